package node_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/boltstore"
	"github.com/sendgate/sendgate/redisconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t testing.TB) prefs.Store {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// gate is a node that is asked in process.
type gate struct {
	*node.Node
	t testing.TB
}

func startGate(t testing.TB, client redis.UniversalClient, store prefs.Store, change func(*node.Options)) gate {
	t.Helper()
	o := node.Options{
		Catalog: catalogfile.Sample(), Redis: client, Store: store, Namespace: "t", Partitions: 16,
		RedisLimit: 5 * time.Second, StoreLimit: 5 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	n, err := node.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return gate{n, t}
}

// follows waits until the gate follows the change stream.
func (g gate) follows() gate {
	g.t.Helper()
	redistest.Until(g.t, "the gate follows the stream", g.Overlay().Live)
	return g
}

// call sends a request, and returns the status and the answer's members.
func (g gate) call(method, path, body string) (int, map[string]any) {
	g.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	var members map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &members); err != nil {
		g.t.Errorf("%s %s: %d %q: %v", method, path, w.Code, w.Body, err)
	}
	return w.Code, members
}

func (g gate) must(method, path, body string) map[string]any {
	g.t.Helper()
	status, members := g.call(method, path, body)
	if status != http.StatusOK {
		g.t.Fatalf("%s %s: %d %v", method, path, status, members)
	}
	return members
}

// set switches one topic's push for a user.
func (g gate) set(user, topic string, on bool) {
	g.t.Helper()
	g.must(http.MethodPatch, "/v1/users/"+user+"/preferences", fmt.Sprintf(`{"preferences":[{"topic":%q,"channel":"push","enabled":%t}]}`, topic, on))
}

// check asks, and returns verdict and reason.
func (g gate) check(id, user, topic string) string {
	g.t.Helper()
	a := g.must(http.MethodPost, "/v1/check", fmt.Sprintf(`{"notification_id":%q,"user_id":%q,"topic":%q,"channel":"push"}`, id, user, topic))
	return fmt.Sprint(a["verdict"], " ", a["reason"])
}

func (g gate) expect(what, want string, check func() string) {
	g.t.Helper()
	if got := check(); got != want {
		g.t.Errorf("%s: %s, not %s", what, got, want)
	}
}

func TestTwoGatesObeyEachOther(t *testing.T) {
	client, store := redistest.Start(t).Client(), openStore(t)
	a, b := startGate(t, client, store, nil).follows(), startGate(t, client, store, nil).follows()
	ask := func(g gate, topic string) func() string {
		return func() string { return g.check("n", "u", topic) }
	}
	b.expect("before", "allow default_on", ask(b, "promotions"))
	a.set("u", "promotions", false)
	a.expect("where it was made", "suppress opted_out", ask(a, "promotions"))
	b.expect("any check that reaches the record", "suppress opted_out", ask(b, "promotions"))
	redistest.Until(t, "the other gate knows", func() bool {
		c, exact, _ := b.Overlay().Consent("u")
		return exact && c.Revision == 1
	})
	b.expect("elsewhere", "suppress opted_out", ask(b, "promotions"))
	// In again, at the other gate.
	b.set("u", "promotions", true)
	redistest.Until(t, "the first gate knows", func() bool { return a.check("n", "u", "promotions") == "allow opted_in" })
	b.expect("in again", "allow opted_in", ask(b, "promotions"))
	// Off altogether, but for what is essential; then altogether.
	a.must(http.MethodPost, "/v1/preferences/unsubscribe-all", `{"user_id":"u","reason":"user_requested"}`)
	redistest.Until(t, "the hold is known", func() bool { return b.check("n", "u", "promotions") == "suppress global_unsubscribe" })
	b.expect("essential", "allow essential", ask(b, "security_alerts"))
	a.must(http.MethodPost, "/v1/preferences/unsubscribe-all", `{"user_id":"u","reason":"account_deletion"}`)
	redistest.Until(t, "the hard hold is known", func() bool { return b.check("n", "u", "security_alerts") == "suppress global_unsubscribe" })
	// Who comes later knows it too, from the record.
	c := startGate(t, client, store, nil)
	c.expect("a new gate", "suppress global_unsubscribe", ask(c, "security_alerts"))
}

func TestDeferredThenOptedOut(t *testing.T) {
	client, store := redistest.Start(t).Client(), openStore(t)
	at := time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	g := startGate(t, client, store, func(o *node.Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return at }
	}).follows()
	for _, user := range []string{"out", "in"} {
		g.must(http.MethodPatch, "/v1/users/"+user+"/preferences", `{"quiet_hours":{"start":"22:00","end":"07:00","timezone":"UTC"}}`)
		g.expect("at 23:00", "defer quiet_hours", func() string { return g.check("n", user, "promotions") })
	}
	if keys := client.Keys(t.Context(), "*cap:*").Val(); len(keys) != 0 {
		t.Errorf("a deferred check was charged: %q", keys)
	}
	g.set("out", "promotions", false)
	mu.Lock()
	at = at.Add(8 * time.Hour)
	mu.Unlock()
	g.expect("out, at 07:00", "suppress opted_out", func() string { return g.check("n", "out", "promotions") })
	g.expect("in, at 07:00", "allow default_on", func() string { return g.check("n", "in", "promotions") })
	if keys := client.Keys(t.Context(), "*cap:*").Val(); len(keys) != 1 {
		t.Errorf("charged at 07:00: %q", keys)
	}
}

func TestGatesWithDifferentClocksShareACap(t *testing.T) {
	client, store := redistest.Start(t).Client(), openStore(t)
	var gates []gate
	for _, off := range []time.Duration{0, 10 * time.Second} {
		gates = append(gates, startGate(t, client, store, func(o *node.Options) {
			o.Now = func() time.Time { return time.Now().Add(off) }
		}))
	}
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if gates[i%2].check(fmt.Sprintf("n%d", i), "u", "promotions") == "allow default_on" {
				allowed.Add(1)
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 5 {
		t.Errorf("%d of 100 were allowed under a cap of 5", allowed.Load())
	}
}

// TestRedisThatNeverAnswers has a Redis that accepts connections and says
// nothing: a check ends within its limit, once, and after ten the breaker
// lets nobody wait any more.
func TestRedisThatNeverAnswers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := redisconn.Open(redisconn.Options{Addrs: []string{listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const limit = 300 * time.Millisecond
	catalog, err := catalogfile.Parse("t", []byte(strings.Replace(string(catalogfile.SampleYAML()), "class: transactional",
		"class: transactional\n    caps: [{by: [], window: 24h, limit: 5}]", 1)))
	if err != nil {
		t.Fatal(err)
	}
	g := startGate(t, client, openStore(t), func(o *node.Options) { o.RedisLimit, o.Catalog = limit, catalog })
	for i := range 10 {
		topic, want := "promotions", "suppress unverifiable"
		if i%2 == 1 { // falls back to the store, and has caps in the same Redis
			topic, want = "order_updates", "allow unverified"
		}
		began := time.Now()
		g.expect("a check", want, func() string { return g.check("n", "u", topic) })
		if took := time.Since(began); took < limit/2 || took > 2*limit {
			t.Errorf("check %d of %s took %v with a limit of %v", i, topic, took, limit)
		}
	}
	began := time.Now()
	g.expect("with an open breaker", "suppress unverifiable", func() string { return g.check("n", "u", "promotions") })
	if took := time.Since(began); took > limit/2 {
		t.Errorf("a check waited %v for a breaker that is open", took)
	}
	if _, body := g.call(http.MethodGet, "/readyz", ""); !strings.Contains(fmt.Sprint(body), "is not asked for a while") {
		t.Errorf("readiness says %v", body)
	}
	// Opt-outs are acknowledged and obeyed all the same.
	g.set("u", "order_updates", false)
	g.expect("opted out meanwhile", "suppress opted_out", func() string { return g.check("n", "u", "order_updates") })
}

func TestUnknownStoredZone(t *testing.T) {
	client, store := redistest.Start(t).Client(), openStore(t)
	g := startGate(t, client, store, func(o *node.Options) {
		o.Now = func() time.Time { return time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC) }
	})
	g.must(http.MethodPatch, "/v1/users/u/preferences", `{"quiet_hours":{"start":"22:00","end":"07:00","timezone":"Asia/Tokyo"}}`)
	record, err := store.Get(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	record.QuietHours.Timezone = "Mars/Base"
	record.Revision++
	if err := store.Put(t.Context(), record, record.Revision-1); err != nil {
		t.Fatal(err)
	}
	client.FlushAll(t.Context())
	g.expect("in the default zone", "defer quiet_hours", func() string { return g.check("n", "u", "promotions") })
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(w.Body.String(), "sendgate_timezone_fallbacks_total 1") {
		t.Error("the fallback is not counted")
	}
	// What was read can be written back, zone and all.
	r := httptest.NewRecorder()
	g.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/v1/users/u/preferences", nil))
	if again := g.must(http.MethodPut, "/v1/users/u/preferences", r.Body.String()); again["revision"] != 2.0 {
		t.Errorf("revision %v", again["revision"])
	}
}

func TestReloadOfDefaults(t *testing.T) {
	client, store := redistest.Start(t).Client(), openStore(t)
	text := string(catalogfile.SampleYAML())
	g := startGate(t, client, store, func(o *node.Options) {
		o.Reload = func() (*sendgate.Catalog, error) { return catalogfile.Parse("t", []byte(text)) }
	}).follows()
	g.set("in", "newsletter", true)
	g.set("out", "newsletter", false)
	text = strings.Replace(text, "newsletter: {category: marketing, channels: {sms: off}}", "newsletter: {category: marketing, default: off}", 1)
	g.Reload()
	for user, want := range map[string]string{"in": "allow opted_in", "out": "suppress opted_out", "unset": "suppress default_off"} {
		g.expect(user, want, func() string { return g.check("n", user, "newsletter") })
	}
}
