package client_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/client"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs/boltstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient is a time limit that no test waits out, on a machine that is busy.
const patient = 20 * time.Second

const catalogText = `
default_timezone: UTC
channels: [push, email]
categories:
  security: {class: essential}
  transactional:
    class: transactional
    caps: [{by: [category], window: 24h, limit: 100}]
  contractual:
    class: transactional
    caps: [{by: [campaign_id], window: 24h, limit: 3, on_unverifiable: suppress}]
  daytime:
    class: transactional
    in_quiet_hours: defer
    allowed_hours: [{start: "09:00", end: "20:00"}]
  marketing:
    class: marketing
    caps: [{by: [category], window: 24h, limit: 2}]
topics:
  security_alerts: {category: security}
  order_updates: {category: transactional}
  ads: {category: contractual}
  reminders: {category: daytime}
  promotions: {category: marketing}
`

func testCatalog(t testing.TB) *sendgate.Catalog {
	t.Helper()
	c, err := catalogfile.Parse("t", []byte(catalogText))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// gate is a whole gate behind a listener, which can be made to misbehave.
type gate struct {
	*httptest.Server
	t     testing.TB
	node  *node.Node
	fault atomic.Pointer[http.HandlerFunc] // answers in its place, but for the catalog
	paths chan string                      // of requests for decisions, as many as fit
}

func startGate(t testing.TB, redisClient redis.UniversalClient) *gate {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "t.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	n, err := node.Start(t.Context(), node.Options{
		Catalog: testCatalog(t), Redis: redisClient, CapsEmbedded: true, Store: store, Namespace: "t", Partitions: 4,
		RedisLimit: patient, StoreLimit: patient, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	g := &gate{t: t, node: n, paths: make(chan string, 1000)}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	redistest.Until(t, "the gate follows the stream", n.Overlay().Live)
	return g
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v1/check") {
		select {
		case g.paths <- r.URL.Path:
		default:
		}
	}
	if f := g.fault.Load(); f != nil && r.URL.Path != "/v1/catalog" {
		// Only once the body is read does the server notice who hangs up.
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		(*f)(w, r)
		return
	}
	g.node.ServeHTTP(w, r)
}

// breaks has a fault answer in the gate's place; nil ends that.
func (g *gate) breaks(f http.HandlerFunc) {
	if f == nil {
		g.fault.Store(nil)
		return
	}
	g.fault.Store(&f)
}

// says answers everything with a status and a body.
func says(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

// asked is how many requests for decisions there were since it was last called.
func (g *gate) asked() int {
	for n := 0; ; n++ {
		select {
		case <-g.paths:
		default:
			return n
		}
	}
}

func (g *gate) call(method, path, body string) {
	g.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if g.node.ServeHTTP(w, r); w.Code != http.StatusOK {
		g.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
}

// optOut has a user say no to promotions by push.
func (g *gate) optOut(user string) {
	g.t.Helper()
	g.call(http.MethodPatch, "/v1/users/"+user+"/preferences", `{"preferences":[{"topic":"promotions","channel":"push","enabled":false}]}`)
}

// used is how many slots of a category's cap a user has taken.
func (g *gate) used(c *client.Client, user, topic string) int {
	g.t.Helper()
	d := g.decided(c, ask("look", user, topic))
	if len(d.Caps) != 1 {
		g.t.Fatalf("%+v", d)
	}
	return d.Caps[0].Used
}

// decided demands a decision of the gate's own.
func (g *gate) decided(c *client.Client, check sendgate.Check) client.Decision {
	g.t.Helper()
	d, err := c.Check(g.t.Context(), check)
	if err != nil || d.ByClient {
		g.t.Fatalf("%+v: %v", d, err)
	}
	return d
}

// newClient makes a client that ends with its test.
func newClient(t testing.TB, change func(*client.Options), urls ...string) *client.Client {
	t.Helper()
	o := client.Options{URLs: urls, Timeout: patient, Catalog: testCatalog(t)}
	if change != nil {
		change(&o)
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ask(id, user, topic string) sendgate.Check {
	return sendgate.Check{NotificationID: id, User: sendgate.UserID(user), Topic: topic, Channel: "push"}
}

func said(d client.Decision) string { return d.Verdict.String() + " " + d.Reason }

// nowhere is a URL at which nobody listens.
func nowhere(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return s.URL
}
