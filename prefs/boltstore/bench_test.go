package boltstore

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sendgate/sendgate"
)

// BenchmarkPut shows what group commit is for: with many callers, one fsync
// serves many of them.
func BenchmarkPut(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := openAt(b, newPath(b))
			before := transactions(b, s)
			work := make(chan int)
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for i := range work {
						user := sendgate.UserID(fmt.Sprint("user-", i))
						if err := s.Put(b.Context(), record(user, 1), 0); err != nil {
							b.Error(err)
						}
					}
				})
			}
			b.ResetTimer()
			for i := range b.N {
				work <- i
			}
			close(work)
			all.Wait()
			b.ReportMetric(float64(transactions(b, s)-before)/float64(b.N), "fsyncs/op")
		})
	}
}
