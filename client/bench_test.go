package client_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendgate/sendgate/client"
	"github.com/sendgate/sendgate/internal/redistest"
)

// BenchmarkCheck has so many goroutines ask one gate over a loopback connection,
// each of them one check after the other, with checks collected and without.
// Gate, client and Redis share the machine.
func BenchmarkCheck(b *testing.B) {
	g := startGate(b, redistest.Start(b).Client())
	for _, callers := range []int{1, 16, 64, 256} {
		for _, c := range []struct {
			name            string
			batch, requests int
		}{{"alone", 1, 0}, {"1 request", 0, 1}, {"2 requests", 0, 2}, {"4 requests", 0, 4}, {"8 requests", 0, 8}} {
			b.Run(fmt.Sprintf("%d callers/%s", callers, c.name), func(b *testing.B) {
				asking := newClient(b, func(o *client.Options) { o.Batch, o.Requests = c.batch, c.requests }, g.URL)
				var next atomic.Int64
				var waited atomic.Int64
				var wg sync.WaitGroup
				b.ResetTimer()
				for range callers {
					wg.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							began := time.Now()
							d, err := asking.Check(b.Context(), ask(fmt.Sprint("n", i%50), fmt.Sprint("u", i%1000), "order_updates"))
							if err != nil || d.ByClient {
								b.Errorf("%+v, %v", d, err)
								return
							}
							waited.Add(int64(time.Since(began)))
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(waited.Load())/float64(b.N)/1000, "µs/wait")
				b.ReportMetric(float64(b.N)/float64(asking.Stats().Requests), "checks/request")
			})
		}
	}
}
