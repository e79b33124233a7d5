package node_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/redisconn"
)

// TestAStartWhileRedisIsDown is not waited for for ever: the gate becomes ready,
// and decides by the store and the categories' policy.
func TestAStartWhileRedisIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close() // nobody listens there
	client, err := redisconn.Open(redisconn.Options{Addrs: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store, p := openStore(t), newPlace(t)
	stored(t, store, "out", push("order_updates", false))
	var ahead atomic.Int64
	g := startGate(t, client, store, func(o *node.Options) {
		p.filtered(o)
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	if status, body := g.call(http.MethodGet, "/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("at once: %d %v", status, body)
	}
	ahead.Store(int64(16 * time.Second))
	redistest.Until(t, "the gate is ready all the same", g.isReady)
	if _, body := g.call(http.MethodGet, "/readyz", ""); !strings.Contains(fmt.Sprint(body), "not been followed since the start") || body["status"] != "degraded" {
		t.Errorf("readiness says %v", body)
	}
	g.expect("by the store", "suppress opted_out", func() string { return g.check("n", "out", "order_updates") })
	g.expect("by policy", "suppress unverifiable", func() string { return g.check("n", "in", "promotions") })
	// What is acknowledged meanwhile is obeyed.
	g.set("out", "order_updates", true)
	g.expect("changed meanwhile", "allow opted_in", func() string { return g.check("n2", "out", "order_updates") })
}
