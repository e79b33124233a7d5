package bench

import (
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// schedule has calls due at fixed instants, whether or not earlier ones have
// returned. It is a vegeta.Pacer that, unlike the one that comes with vegeta,
// drops no call that is due when the time is over, and knows when each was due.
type schedule struct {
	rate  float64 // calls a second
	calls uint64
	began time.Time // by the clock of the attack; set before the first call
}

var _ vegeta.Pacer = (*schedule)(nil)

func newSchedule(rate float64, lasting time.Duration) *schedule {
	return &schedule{rate: rate, calls: uint64(rate * lasting.Seconds())}
}

// Pace waits by itself until the next call is due: what vegeta does, time.Sleep,
// comes up to a millisecond late on an idle machine.
func (s *schedule) Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool) {
	if hits == 0 {
		s.began = time.Now().Add(-elapsed)
	}
	if hits >= s.calls {
		return 0, true
	}
	pause(s.after(hits) - elapsed)
	return 0, false
}

// Rate is the number of calls a second.
func (s *schedule) Rate(time.Duration) float64 { return s.rate }

// after is how long after the beginning a call is due, which are counted from 0.
func (s *schedule) after(call uint64) time.Duration {
	return time.Duration(float64(call) / s.rate * float64(time.Second))
}

// took is how long a call took from when it was due. A call that was sent late,
// since all connections were busy or the machine was, has waited.
func (s *schedule) took(r *vegeta.Result) time.Duration {
	return s.late(r) + r.Latency
}

// late is how long after it was due a call was sent.
func (s *schedule) late(r *vegeta.Result) time.Duration {
	return r.Timestamp.Sub(s.began.Add(s.after(r.Seq)))
}
