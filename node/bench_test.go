package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/node"
)

// BenchmarkCheck measures checks as a router sees them but for the network:
// HTTP and JSON in process, a real Redis. `redis` is the floor under them, one
// round trip.
func BenchmarkCheck(b *testing.B) {
	client := redistest.Start(b).Client()
	g := startGate(b, client, openStore(b), func(o *node.Options) { o.Log = slog.New(slog.DiscardHandler) }).follows()
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
	b.Run("redis", func(b *testing.B) {
		for b.Loop() {
			client.Get(context.Background(), "nothing")
		}
	})
	b.Run("known opt-out", func(b *testing.B) {
		for b.Loop() {
			post("/v1/check", check(0, "out", "promotions"))
		}
	})
	b.Run("record", func(b *testing.B) {
		for b.Loop() {
			post("/v1/check", check(0, "in", "order_updates"))
		}
	})
	b.Run("record and cap", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			post("/v1/check", check(i, "in", "promotions"))
		}
	})
	b.Run("batch of 100, per check", func(b *testing.B) {
		for i := 0; b.Loop(); i += 100 {
			checks := make([]string, 100)
			for j := range checks {
				checks[j] = check(i+j, fmt.Sprintf("u%d", j), "promotions")
			}
			post("/v1/check/batch", `{"checks":[`+strings.Join(checks, ",")+`]}`)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/check")
	})
}
