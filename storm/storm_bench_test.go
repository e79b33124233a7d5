package storm_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendgate/sendgate/prefs"
)

// watchedOf is one in how many opt-outs of a storm that is watched.
const watchedOf = 50

// BenchmarkStorm has as many people opt out as the machine takes, while a few
// checks go on, and says what that does to everything else.
func BenchmarkStorm(b *testing.B) {
	for _, size := range []int{2, *gates} {
		b.Run(fmt.Sprintf("%d gates/%d callers", size, *callers), func(b *testing.B) {
			f := newFleet(b, size)
			for b.Loop() { // once: it takes longer than any benchmark has to
				rage(b, f)
			}
		})
	}
}

func rage(b *testing.B, f *fleet) {
	checksBefore := f.checkFor(5 * time.Second)
	watchers, stopHeap := f.watch(), watchHeap()
	heapBefore, before, began := heapInUse(), f.commands(), time.Now()
	var checksDuring checked
	var checking sync.WaitGroup
	checking.Go(func() { checksDuring = f.checkFor(*stormFor) })
	acked, refused := f.optOutAll(b, watchers)
	took := time.Since(began)
	checking.Wait()
	during, heap := f.commands().Since(before), stopHeap()
	pending := f.pending()
	drained, left := f.drain()
	finish(watchers)

	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(acked)/took.Seconds(), "acked/s")
	b.ReportMetric(float64(refused), "refused")
	reportWatched(b, watchers)
	checksBefore.report(b, "calmcheck")
	checksDuring.report(b, "stormcheck")
	b.ReportMetric(ratio(checksDuring.took.at(0.5), checksBefore.took.at(0.5)), "check_p50_ratio")
	b.ReportMetric(ratio(checksDuring.took.at(0.99), checksBefore.took.at(0.99)), "check_p99_ratio")
	b.ReportMetric(float64(heap)/(1<<20), "heap_MiB")
	b.ReportMetric((float64(heap)-float64(heapBefore))/float64(max(1, acked)), "heap_B/change")
	b.ReportMetric(float64(pending), "pending_at_end")
	b.ReportMetric(drained.Seconds(), "drain_s")
	b.ReportMetric(float64(left), "left_pending")
	b.ReportMetric(float64(during.Total())/float64(max(1, acked)), "redis_calls/change")
	all, longest := f.streamed()
	b.ReportMetric(float64(all), "stream_entries")
	b.ReportMetric(float64(longest), "longest_stream")
	b.Logf("Redis, for each change, in the storm: %s", during.Per(acked))
	b.Logf("Redis, for each change, until drained: %s", f.commands().Since(before).Per(acked))
}

// optOutAll has callers opt out one person after the other, each at a gate
// chosen at random, for as long as a storm lasts.
func (f *fleet) optOutAll(b *testing.B, watchers []*watcher) (acked, refused int) {
	b.Helper()
	var next, done, failed atomic.Int64
	var first sync.Once
	var all sync.WaitGroup
	end := time.Now().Add(*stormFor)
	for range *callers {
		all.Go(func() {
			for time.Now().Before(end) {
				i, sent := next.Add(1), time.Now()
				user := fmt.Sprintf("storm_%d", i)
				revision, err := f.set(f.gates[rand.IntN(len(f.gates))], user, false)
				if err != nil {
					failed.Add(1)
					first.Do(func() { b.Logf("an opt-out was not acknowledged: %v", err) })
					continue
				}
				done.Add(1)
				if i%watchedOf == 0 {
					tell(watchers, change{user: user, revision: revision, due: sent, acked: time.Now()})
				}
			}
		})
	}
	all.Wait()
	return int(done.Load()), int(failed.Load())
}

// pending is how many records have pending changes.
func (f *fleet) pending() (n int) {
	f.t.Helper()
	for shard := range prefs.PendingShards {
		err := f.store.Pending(f.t.Context(), shard, func(prefs.PendingEntry) error {
			n++
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return n
}

// drain waits until nothing is pending, and says how long that took; what is
// left when it has waited for long enough, it says too.
func (f *fleet) drain() (took time.Duration, left int) {
	f.t.Helper()
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		left, took = f.pending(), time.Since(began)
		if left == 0 || took > *drainFor {
			return took, left
		}
		<-tick.C
	}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }
