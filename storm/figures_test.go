package storm_test

import (
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"
)

// durations are those of many alike.
type durations []time.Duration

// at is the duration that a share of all do not exceed; 0 if there are none.
func (d durations) at(share float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(share*float64(len(d))))]
}

func (d durations) worst() time.Duration { return d.at(1) }

// ms is a duration in milliseconds, as benchmarks print it.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// report prints durations under a name.
func (d durations) report(b *testing.B, name string) {
	b.ReportMetric(ms(d.at(0.5)), name+"_p50_ms")
	b.ReportMetric(ms(d.at(0.99)), name+"_p99_ms")
	b.ReportMetric(ms(d.worst()), name+"_worst_ms")
}

// heapInUse is how many bytes of the heap are in use, what is not collected yet
// included.
func heapInUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

// watchHeap looks at the heap twice a second until it is stopped, which returns
// the most that was in use.
func watchHeap() (stop func() uint64) {
	ended := make(chan struct{})
	var watching sync.WaitGroup
	most := heapInUse()
	watching.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				most = max(most, heapInUse())
			case <-ended:
				return
			}
		}
	})
	return func() uint64 {
		close(ended)
		watching.Wait()
		return max(most, heapInUse())
	}
}
