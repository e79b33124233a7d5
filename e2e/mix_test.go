package e2e_test

import (
	"fmt"

	"github.com/sendgate/sendgate/internal/oracle"
)

// wish is a kind of check, and how many of a hundred are of it.
type wish struct {
	share  int
	topics []string
	fits   func(oracle.Decision) bool // by consent alone; an empty verdict goes on to quiet hours and caps
}

func because(reason string) func(oracle.Decision) bool {
	return func(d oracle.Decision) bool { return d.Verdict == "suppress" && d.Reason == reason }
}

func goesOn(d oracle.Decision) bool { return d.Verdict == "" }
func whatever(oracle.Decision) bool { return true }

// usual is the mix of a usual stream: 70 % of it is marketing that is opted out
// of, in one way or another.
var usual = []wish{
	{55, marketing, because("opted_out")},
	{7, marketing, because("global_unsubscribe")},
	{8, marketing, because("default_off")},
	{15, marketing, goesOn},
	{12, paid, whatever},
	{3, topicsOf("essential"), whatever},
}

// mix makes up n checks, in random order.
func (w *world) mix(name string, n int, wishes []wish) []oracle.Check {
	var checks []oracle.Check
	sum := 0
	for _, wish := range wishes {
		sum += wish.share
	}
	for _, wish := range wishes {
		for range n * wish.share / sum {
			c := w.check(wish)
			c.NotificationID = fmt.Sprintf("%s_%d", name, len(checks))
			if len(checks) > 0 && w.rand.IntN(50) == 0 {
				// A router that asks once more, about the same notification.
				if again := checks[len(checks)-1]; wish.fits(w.consented(again)) {
					c = again
				}
			}
			checks = append(checks, c)
		}
	}
	w.rand.Shuffle(len(checks), func(i, j int) { checks[i], checks[j] = checks[j], checks[i] })
	return checks
}

// check makes up a check that fits a wish. Some people are asked about again
// and again, so that their caps fill; some are in no store.
func (w *world) check(wish wish) oracle.Check {
	for {
		c := oracle.Check{User: pick(w.rand, w.people).id, Topic: pick(w.rand, wish.topics), Channel: pick(w.rand, channels)}
		switch n := w.rand.IntN(20); {
		case n < 4:
			c.User = w.people[w.rand.IntN(200)].id
		case n == 4:
			c.User = fmt.Sprintf("nobody_%d", w.rand.IntN(2000))
		}
		if w.rand.IntN(4) == 0 {
			c.CampaignID = fmt.Sprintf("c%d", w.rand.IntN(4))
		}
		if wish.fits(w.consented(c)) {
			return c
		}
	}
}

// consented is what consent alone says of a check.
func (w *world) consented(c oracle.Check) oracle.Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.oracle.Consented(w.oracle.Consent(c.User), c)
}
