package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/node"
)

// oneCap is the least that a frequency cap in Redis can be: a sorted set, one
// cap, nothing else. It is what the gate's own checks are held against.
const oneCap = `local now = redis.call('TIME')
local at = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at - ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], at, ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`

// BenchmarkCheck measures checks as a router sees them but for the network:
// HTTP and JSON in process, a real Redis. `redis` is the floor under them: one
// round trip, a minimal cap alone, and a hundred of those in one pipeline.
func BenchmarkCheck(b *testing.B) {
	client, store, p := redistest.Start(b).Client(), openStore(b), newPlace(b)
	stored(b, store, "filtered", push("promotions", false))
	generation := once(b, newBuilder(b, client, store, p))
	g := startGate(b, client, store, func(o *node.Options) {
		p.filtered(o)
		o.Log = slog.New(slog.DiscardHandler)
	}).follows()
	g.uses(generation)
	g.set("out", "promotions", false)
	post := func(path, body string) {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	check := func(i int, user, topic string) string {
		return fmt.Sprintf(`{"notification_id":"n%d","user_id":%q,"topic":%q,"channel":"push"}`, i, user, topic)
	}
	ctx, script := context.Background(), redis.NewScript(oneCap)
	if err := script.Load(ctx, client).Err(); err != nil {
		b.Fatal(err)
	}
	b.Run("redis: GET", func(b *testing.B) {
		for b.Loop() {
			client.Get(ctx, "nothing")
		}
	})
	b.Run("redis: minimal EVALSHA", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			script.EvalSha(ctx, client, []string{fmt.Sprint("bench:", i%100)}, 86_400_000, 5, i)
		}
	})
	b.Run("redis: 100 minimal EVALSHA pipelined", func(b *testing.B) {
		for i := 0; b.Loop(); i += 100 {
			_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for j := range 100 {
					script.EvalSha(ctx, pipe, []string{fmt.Sprint("bench:", j)}, 86_400_000, 5, i+j)
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/check")
	})
	for _, c := range []struct{ name, user, topic string }{
		{"opt-out in the overlay", "out", "promotions"},
		{"opt-out in the filter", "filtered", "promotions"},
		{"record", "in", "order_updates"},
		{"record and cap", "in", "promotions"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				post("/v1/check", check(i, c.user, c.topic))
			}
		})
	}
	batch := func(optedOut int) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i += 100 {
				checks := make([]string, 100)
				for j := range checks {
					user := fmt.Sprintf("u%d", j)
					if j < optedOut {
						user = "filtered"
					}
					checks[j] = check(i+j, user, "promotions")
				}
				post("/v1/check/batch", `{"checks":[`+strings.Join(checks, ",")+`]}`)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/check")
		}
	}
	b.Run("batch of 100", batch(0))
	b.Run("batch of 100, 70 opted out", batch(70))
}
