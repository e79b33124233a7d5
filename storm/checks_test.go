package storm_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// checksEach is how many checks go on in a storm, a second, over all gates.
const checksEach = 200

// checked is what came of some checks.
type checked struct {
	took     durations // from when a check was due
	degraded int       // answered without full knowledge
	failed   int
	missed   int // began late
}

// mixed makes up the checks that go on: of ten, six are stopped by the filter,
// two read a record and charge a cap, one reads a record, and one is essential.
func mixed(i int) check {
	c := check{fmt.Sprintf("n%d", i), bystander(2 * i), "promotions", "push"}
	switch i % 10 {
	case 6, 7:
		c.User = bystander(2*i + 1)
	case 8:
		c.Topic = "order_updates"
	case 9:
		c.Topic = "security_alerts"
	}
	return c
}

// checkFor asks checks for some time, at every gate in turn.
func (f *fleet) checkFor(lasting time.Duration) (result checked) {
	var mu sync.Mutex
	_, result.missed = openLoop(checksEach, lasting, func(i int, due time.Time) {
		// The turn moves on by one with every ten, so that every gate gets
		// every kind.
		answer, err := f.ask(f.gates[(i+i/10)%len(f.gates)], mixed(i))
		took := time.Since(due)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			result.failed++
			return
		}
		result.took = append(result.took, took)
		if answer.Degraded {
			result.degraded++
		}
	})
	return result
}

func (c checked) report(b *testing.B, name string) {
	c.took.report(b, name)
	b.ReportMetric(float64(c.degraded), name+"_degraded")
	b.ReportMetric(float64(c.failed), name+"_failed")
	b.ReportMetric(float64(c.missed), name+"_missed")
}
