package freqcap_test

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sendgate/sendgate"
)

// oracle is the slow and obvious form of the model: each cap's log is a map
// from notification id to the millisecond of its charge. It shares no code with
// the package; the caller says which log a cap has.
type oracle map[string]map[string]int64

// judge answers one ask at an instant. logs names the log of each of its caps.
func (o oracle) judge(now int64, ask sendgate.CapAsk, logs []string, reserve bool) sendgate.CapAnswer {
	a := sendgate.CapAnswer{Admitted: true, At: instant(now), Caps: make([]sendgate.CapState, len(logs))}
	held := make([]bool, len(logs))
	for i, c := range ask.Caps {
		at, found := o[logs[i]][ask.NotificationID]
		held[i] = found && at > now-c.Window.Milliseconds()
		a.Caps[i].Cap, a.Caps[i].Values = c.Cap, c.Values
		a.Caps[i].Full = !held[i] && o.used(now, logs[i], c) >= c.Limit
		a.Admitted = a.Admitted && !a.Caps[i].Full
	}
	for i, c := range ask.Caps {
		if reserve && a.Admitted && !held[i] {
			o.charge(now, logs[i], ask.NotificationID, c)
		}
	}
	if reserve && a.Admitted && slices.Contains(held, false) {
		o.written(now, string(ask.User))
	}
	for i, c := range ask.Caps {
		s := &a.Caps[i]
		s.Used = o.used(now, logs[i], c)
		below := s.Used // the clock runs until fewer than this many are left
		if s.Full {
			below = c.Limit
		}
		if below > 0 {
			s.ResetsAt = instant(o.firstBelow(now, logs[i], c, below))
		}
		if held[i] && s.Used > c.Limit {
			o.lapse(now, logs[i], ask.NotificationID, c, s)
		}
	}
	return a
}

// lapse tells when a held slot lapses and when there is room again, if there
// is a time between the two.
func (o oracle) lapse(now int64, log, id string, c sendgate.BoundCap, s *sendgate.CapState) {
	lapses := o[log][id] + c.Window.Milliseconds()
	if c.Limit == 0 {
		s.LapsesAt = instant(lapses)
	} else if returns := o.firstBelow(now, log, c, c.Limit); returns > lapses {
		s.LapsesAt, s.ReturnsAt = instant(lapses), instant(returns)
	}
}

func (o oracle) used(now int64, log string, c sendgate.BoundCap) (n int) {
	for _, at := range o[log] {
		if at > now-c.Window.Milliseconds() {
			n++
		}
	}
	return n
}

// charge also forgets what has left, as the real log does, for good.
func (o oracle) charge(now int64, log, id string, c sendgate.BoundCap) {
	if o[log] == nil {
		o[log] = make(map[string]int64)
	}
	o[log][id] = now
	for other, at := range o[log] {
		if at <= now-c.Window.Milliseconds() {
			delete(o[log], other)
		}
	}
}

// written forgets those of a user's logs in which nothing is of use any more, as
// whenever one of them is written. What the clock may step back to is kept.
func (o oracle) written(now int64, user string) {
	for log, entries := range o {
		newest := int64(math.MinInt64)
		for _, at := range entries {
			newest = max(newest, at)
		}
		window := windows[strings.TrimPrefix(log, user+" ")]
		if strings.HasPrefix(log, user+" ") && newest+window.Milliseconds()+slack.Milliseconds() <= now {
			delete(o, log)
		}
	}
}

// windows are those of the logs that histories use.
var windows = map[string]time.Duration{}

func init() {
	for _, s := range shapes {
		windows[s.log] = s.window
	}
}

// firstBelow lets the clock run from one departure to the next until fewer than
// some number of entries count.
func (o oracle) firstBelow(now int64, log string, c sendgate.BoundCap, below int) int64 {
	for o.used(now, log, c) >= below {
		next := int64(math.MaxInt64)
		for _, at := range o[log] {
			if leaves := at + int64(c.Window/time.Millisecond); leaves > now {
				next = min(next, leaves)
			}
		}
		now = next
	}
	return now
}
