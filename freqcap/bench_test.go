package freqcap_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
)

// capsOf lists n caps of a hundred slots, each with a log of its own.
func capsOf(n int) []sendgate.BoundCap {
	caps := make([]sendgate.BoundCap, n)
	for i := range caps {
		caps[i] = capOf(time.Duration(i+1)*time.Hour, 100, "category", "marketing", "channel", "push")
	}
	return caps
}

// run asks for a list again and again, each time of other users.
func run(bm *testing.B, b *rig, asks []sendgate.CapAsk) {
	bm.ReportAllocs()
	users := make([]sendgate.UserID, len(asks))
	for i := range asks {
		users[i] = asks[i].User
	}
	n := 0
	before := redisMicros(bm, b.client)
	for bm.Loop() {
		for i := range asks {
			asks[i].User = users[i] + sendgate.UserID(fmt.Sprintf("-%d", n%5000))
			asks[i].NotificationID = fmt.Sprintf("n%d-%d", n, i)
		}
		n++
		for _, a := range b.Judge(context.Background(), asks, 0) {
			if a.Err != nil {
				bm.Fatal(a.Err)
			}
		}
	}
	bm.ReportMetric(float64(bm.Elapsed().Microseconds())/float64(bm.N*len(asks)), "µs/ask")
	bm.ReportMetric((redisMicros(bm, b.client)-before)/float64(bm.N*len(asks)), "redis-µs/ask")
}

// redisMicros is how much processor time a Redis has used, in microseconds: a
// figure that means the same on a busy machine.
func redisMicros(bm *testing.B, client redis.UniversalClient) (sum float64) {
	info, err := client.Info(context.Background(), "cpu").Result()
	if err != nil {
		bm.Fatal(err)
	}
	for _, line := range strings.Split(info, "\r\n") {
		var seconds float64
		for _, name := range []string{"used_cpu_user:%g", "used_cpu_sys:%g"} {
			if _, err := fmt.Sscanf(line, name, &seconds); err == nil {
				sum += seconds * 1e6
			}
		}
	}
	return sum
}

func BenchmarkJudge(bm *testing.B) {
	b := onRedisClock(bm, redistest.Start(bm).Client())
	for _, caps := range []int{1, 3, 8} {
		bm.Run(fmt.Sprintf("single/caps=%d", caps), func(bm *testing.B) { run(bm, b, asksOf("u", 1, capsOf(caps)...)) })
	}
	bm.Run("users=100/caps=3", func(bm *testing.B) {
		var asks []sendgate.CapAsk
		for i := range 100 {
			asks = append(asks, asksOf(sendgate.UserID(fmt.Sprint("u", i)), 1, capsOf(3)...)...)
		}
		run(bm, b, asks)
	})
	bm.Run("candidates=50/caps=3", func(bm *testing.B) { run(bm, b, asksOf("u", 50, capsOf(3)...)) })
}

// BenchmarkFloor is what the least script costs on the same way: nothing can be
// judged for less.
func BenchmarkFloor(bm *testing.B) {
	client := redistest.Start(bm).Client()
	ctx, least := context.Background(), redis.NewScript("return {1, 1, 0, 1}")
	if err := least.Load(ctx, client).Err(); err != nil {
		bm.Fatal(err)
	}
	for _, size := range []int{1, 100} {
		bm.Run(fmt.Sprintf("pipeline=%d", size), func(bm *testing.B) {
			bm.ReportAllocs()
			before := redisMicros(bm, client)
			for bm.Loop() {
				if _, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
					for range size {
						least.EvalSha(ctx, p, []string{"t:{1}:cap:u"}, "n", 60_000, 1, 100)
					}
					return nil
				}); err != nil {
					bm.Fatal(err)
				}
			}
			bm.ReportMetric(float64(bm.Elapsed().Microseconds())/float64(bm.N*size), "µs/ask")
			bm.ReportMetric((redisMicros(bm, client)-before)/float64(bm.N*size), "redis-µs/ask")
		})
	}
}
