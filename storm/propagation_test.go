package storm_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// changers is how many people change their minds.
const changers = 10_000

// BenchmarkPropagation makes changes at fixed instants at gates chosen at
// random, and times, for each change and each gate, how long after its
// acknowledgement the gate obeys it (inforce) and knows it without asking
// anybody (known), how long after it was due it is obeyed (dueinforce), and the
// acknowledgement itself (edit, from when it was due). Times are exact to about
// a millisecond, and inforce is that of known up to a quarter of a second.
func BenchmarkPropagation(b *testing.B) {
	for _, text := range strings.Split(*rates, ",") {
		rate, err := strconv.Atoi(text)
		if err != nil || rate < 1 {
			b.Fatalf("-storm.rates: %q is no rate", text)
		}
		b.Run(fmt.Sprintf("%d gates/%d a second", *gates, rate), func(b *testing.B) {
			f := newFleet(b, *gates)
			for b.Loop() { // once: it takes longer than any benchmark has to
				propagate(b, f, rate)
			}
		})
	}
}

func propagate(b *testing.B, f *fleet, rate int) {
	everybody, watchers := newPeople(changers), f.watch()
	var mu sync.Mutex
	var edits durations
	var failures []error
	before, began := f.commands(), time.Now()
	calls, missed := openLoop(rate, *steady, func(_ int, due time.Time) {
		err := f.changeSomebody(everybody, watchers, due)
		took := time.Since(due)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failures = append(failures, err)
			return
		}
		edits = append(edits, took)
	})
	took := time.Since(began)
	after := f.commands()
	finish(watchers)

	for _, err := range failures[:min(3, len(failures))] {
		b.Logf("a change was not acknowledged: %v", err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(edits))/took.Seconds(), "acked/s")
	b.ReportMetric(float64(len(failures)), "refused")
	b.ReportMetric(100*float64(missed)/float64(calls), "missed_%")
	edits.report(b, "edit")
	reportWatched(b, watchers)
	b.ReportMetric(float64(after.Since(before).Total())/float64(max(1, len(edits))), "redis_calls/change")
}

// changeSomebody has somebody change their mind, and watchers watch for it.
func (f *fleet) changeSomebody(everybody *people, watchers []*watcher, due time.Time) error {
	one := everybody.take()
	if one == nil {
		return fmt.Errorf("everybody has changed their mind within %s", restFor)
	}
	defer everybody.putBack(one)
	revision, err := f.set(f.gates[rand.IntN(len(f.gates))], one.id, !one.in)
	if err != nil {
		return err
	}
	one.in = !one.in
	tell(watchers, change{user: one.id, in: one.in, revision: revision, due: due, acked: time.Now()})
	return nil
}

// reportWatched prints what the watchers of all gates have seen.
func reportWatched(b *testing.B, watchers []*watcher) {
	var known, obeyed, fromDue durations
	late, lateOuts, forgotten := 0, 0, 0
	for _, w := range watchers {
		known, obeyed, fromDue = append(known, w.known...), append(obeyed, w.obeyed...), append(fromDue, w.fromDue...)
		late, lateOuts, forgotten = late+w.late, lateOuts+w.lateOuts, forgotten+w.forgotten
		for _, wrong := range w.wrong[:min(3, len(w.wrong))] {
			b.Error(wrong)
		}
	}
	obeyed.report(b, "inforce")
	fromDue.report(b, "dueinforce")
	known.report(b, "known")
	b.ReportMetric(float64(late), "late")
	b.ReportMetric(float64(lateOuts), "late_optouts")
	b.ReportMetric(float64(forgotten), "forgotten")
}
