package bench

import (
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func TestLatencyCountsFromWhenACallWasDue(t *testing.T) {
	began := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	s := newSchedule(1000, time.Second)
	s.began = began
	for _, c := range []struct {
		name           string
		call           uint64
		sent, answered time.Duration // after the beginning, and after it was sent
		late, took     time.Duration
	}{
		{"on time", 0, 0, 2 * time.Millisecond, 0, 2 * time.Millisecond},
		{"due later", 500, 500 * time.Millisecond, time.Millisecond, 0, time.Millisecond},
		{"sent late, as all were busy", 500, 700 * time.Millisecond, time.Millisecond, 200 * time.Millisecond, 201 * time.Millisecond},
	} {
		r := &vegeta.Result{Seq: c.call, Timestamp: began.Add(c.sent), Latency: c.answered}
		if s.late(r) != c.late || s.took(r) != c.took {
			t.Errorf("%s: %s late, took %s; want %s and %s", c.name, s.late(r), s.took(r), c.late, c.took)
		}
	}
}

// TestEveryCallIsMade lets the time pass in which all calls were due: they are
// made at once then.
func TestEveryCallIsMade(t *testing.T) {
	s := newSchedule(100, time.Second)
	for call := range uint64(100) {
		if wait, stop := s.Pace(time.Minute, call); wait != 0 || stop {
			t.Fatalf("call %d is to wait for %s more, or not made: %v", call, wait, stop)
		}
	}
	if _, stop := s.Pace(time.Minute, 100); !stop {
		t.Error("there is one call more than there should be")
	}
}

// TestRateDoesNotDrift looks at a rate whose calls are no whole number of
// nanoseconds apart.
func TestRateDoesNotDrift(t *testing.T) {
	s := newSchedule(30_000.0/7, 70*time.Second)
	if got := s.after(s.calls); got < 70*time.Second-time.Millisecond || got > 70*time.Second+time.Millisecond {
		t.Errorf("%d calls end after %s", s.calls, got)
	}
}
