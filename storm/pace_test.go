package storm_test

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostInFlight is how many calls are under way at once at the most, which
	// at a thousand a second is a second's worth of them.
	mostInFlight = 1024
	// missedBy is how late a call may begin and still count as made when due.
	missedBy = 10 * time.Millisecond
)

// openLoop calls do at fixed instants, rate times a second, whether or not
// earlier calls have returned: a system that slows down does not get less to
// do. It returns when the last call has, and says how many calls there were,
// and how many of them began later than missedBy, since as many as may be were
// under way or the machine was busy.
func openLoop(rate int, lasting time.Duration, do func(i int, due time.Time)) (calls, missed int) {
	calls = int(lasting.Seconds() * float64(rate))
	var next, late atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range min(mostInFlight, calls) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < calls; i = int(next.Add(1)) - 1 {
				due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
				<-time.After(time.Until(due))
				if time.Since(due) > missedBy {
					late.Add(1)
				}
				do(i, due)
			}
		})
	}
	all.Wait()
	return calls, int(late.Load())
}
