package e2e_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/sendgate/sendgate/internal/oracle"
)

// The second run: a filter that is as bad as it may be, and how many are asked
// about who have not opted out, each once, and who have. The latter are few
// enough for none to be left out where rejections are verified.
const (
	statedRate = 0.001
	innocents  = 20_000 / part
	guilty     = 800
)

// certainty is how improbable a count has to be to fail the test: a filter that
// keeps to its rate fails once in a billion runs.
const certainty = 1e-9

// testStatedRate counts whom a filter at the stated rate rejects in the wrong.
func testStatedRate(t *testing.T, f *fleet, w *world) {
	f.configure(map[string]any{"max_false_positive": statedRate, "aim_false_positive": statedRate, "verify_sample": 1})
	f.startGate()
	f.startGate()
	f.build().Wait()
	f.awaitGeneration(0)

	s := w.stream(f.gates, false)
	s.askers, s.forgives = 1, wronged
	s.send(w.eachOnce("innocent", innocents, wish{topics: marketing, fits: goesOn}))
	s.end(t, "a filter at the stated rate, asked about who has not opted out")
	wrongly, twice := s.forgiven, s.discarded

	s = w.stream(f.gates, false)
	s.askers, s.forgives = 1, otherReason
	s.send(w.eachOnce("guilty", guilty, wish{topics: marketing, fits: because("opted_out")}))
	s.end(t, "a filter at the stated rate, asked about who has opted out")
	if most := mostOf(guilty, statedRate, certainty); s.forgiven > most {
		t.Errorf("%d of %d were rejected for a hold that is not there; at a rate of %v it is at most %d", s.forgiven, guilty, statedRate, most)
	}

	most := mostOf(innocents, statedRate, certainty)
	t.Logf("of %d who have not opted out %d were rejected: a rate of %.2g, stated %.2g, the gate's own estimate %.2g; at most %d may be",
		innocents, wrongly, float64(wrongly)/innocents, statedRate, f.gates[0].metric("sendgate_filter_false_positive_estimate"), most)
	if wrongly > most {
		t.Errorf("%d of %d were rejected in the wrong; at a rate of %v it is at most %d", wrongly, innocents, statedRate, most)
	}
	rightly := s.seen["suppress opted_out"+inexactly] + s.seen["suppress global_unsubscribe"+inexactly]
	testVerified(t, f, wrongly, rightly, twice+s.discarded)
}

// testVerified wants the gates to have found out by themselves whom they
// rejected in the wrong. Who was asked about twice may be counted twice.
func testVerified(t *testing.T, f *fleet, wrongly, rightly, twice int) {
	t.Helper()
	outcome := func(name string) (sum int) {
		for _, g := range f.gates {
			sum += max(0, int(g.metric(fmt.Sprintf("sendgate_filter_rejects_verified_total{outcome=%q}", name))))
		}
		return sum
	}
	var confirmed, falsely, failed int
	until(t, "all rejections are verified", func() bool {
		confirmed, falsely, failed = outcome("confirmed"), outcome("false_positive"), outcome("failed")
		return confirmed+falsely+failed >= wrongly+rightly+twice
	})
	t.Logf("the gates verified their rejections: %d confirmed, %d false positives, %d failed", confirmed, falsely, failed)
	if falsely > wrongly+twice || falsely+failed < wrongly || confirmed > rightly+twice {
		t.Errorf("they verified %d and %d; %d rejections were right and %d wrong, %d of them made twice", confirmed, falsely, rightly, wrongly, twice)
	}
}

// wronged tells whether a check was rejected by the filter alone that the
// oracle lets go on to quiet hours and caps.
func wronged(_ oracle.Check, got decision, want oracle.Decision) bool {
	return !got.Exact && mayBeInexact(got) && got.Error == nil && !got.Degraded && want.Reason != "opted_out"
}

// otherReason tells whether a check was rejected as it should be, but for a
// hold that is not there.
func otherReason(_ oracle.Check, got decision, want oracle.Decision) bool {
	return !got.Exact && mayBeInexact(got) && got.Verdict == want.Verdict && got.Reason == "global_unsubscribe"
}

// eachOnce makes up a check of each of n people that fits a wish. Every person
// has keys of their own in the filter, so that false positives are independent.
func (w *world) eachOnce(name string, n int, wish wish) []oracle.Check {
	checks := make([]oracle.Check, 0, n)
	for _, p := range w.people {
		for range 20 {
			c := oracle.Check{NotificationID: name, User: p.id, Topic: pick(w.rand, wish.topics), Channel: pick(w.rand, channels)}
			if wish.fits(w.consented(c)) {
				checks = append(checks, c)
				break
			}
		}
		if len(checks) == n {
			break
		}
	}
	return checks
}

// mostOf is the least count that n independent trials of a probability exceed
// with less than another.
func mostOf(n int, probability, less float64) int {
	// From the top down, the terms of the binomial distribution are summed up
	// until they are no longer improbable.
	tail := 0.0
	for k := n; k > 0; k-- {
		tail += math.Exp(logChoose(n, k) + float64(k)*math.Log(probability) + float64(n-k)*math.Log1p(-probability))
		if tail >= less {
			return k
		}
	}
	return 0
}

func logChoose(n, k int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
	return lg(n) - lg(k) - lg(n-k)
}
