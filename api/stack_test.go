package api

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/boltstore"
	"github.com/sendgate/sendgate/prefs/rediscache"
	"github.com/sendgate/sendgate/redisconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ptr[T any](v T) *T { return &v }

func testCatalog(t testing.TB) *sendgate.Catalog {
	t.Helper()
	c, err := sendgate.NewCatalog(sendgate.CatalogSpec{
		DefaultTimezone: "UTC",
		Channels:        []string{"push", "email", "sms", "in_app"},
		Categories: map[string]sendgate.CategorySpec{
			"security":      {Class: "essential"},
			"transactional": {Class: "transactional"},
			"social":        {Class: "marketing"},
			"marketing": {
				Class: "marketing",
				Caps: []sendgate.CapSpec{
					{By: []sendgate.Field{"category"}, Window: "24h", Limit: ptr(2)},
					{By: []sendgate.Field{"campaign_id"}, Window: "24h", Limit: ptr(2)},
					{By: []sendgate.Field{"campaign_id", "channel"}, Window: "24h", Limit: ptr(2)},
				},
				UserCaps: &sendgate.UserCapsSpec{Ceiling: ptr(20)},
			},
		},
		Topics: map[string]sendgate.TopicSpec{
			"security_alerts": {Category: "security"},
			"order_updates":   {Category: "transactional"},
			"friend_requests": {Category: "social"},
			"promotions":      {Category: "marketing"},
			"newsletter":      {Category: "marketing", Default: "off", Channels: map[string]string{"email": "on"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// noObserver is a gate's observer that keeps nothing.
type noObserver struct{}

func (noObserver) Decided(*sendgate.Check, *sendgate.Decision, sendgate.Mode) {}
func (noObserver) Settled(*sendgate.Settlement)                               {}
func (noObserver) StepTook(sendgate.Step, int, time.Duration)                 {}
func (noObserver) ZoneFellBack()                                              {}

// fragileStore is a store that can be told to fail.
type fragileStore struct {
	prefs.Store
	down atomic.Bool
}

var errDown = errors.New("no route to host while reading key u_42")

func (s *fragileStore) Get(ctx context.Context, user sendgate.UserID) (*prefs.Record, error) {
	if s.down.Load() {
		<-ctx.Done()
		return nil, errors.Join(errDown, ctx.Err())
	}
	return s.Store.Get(ctx, user)
}

func (s *fragileStore) ReadDocument(ctx context.Context, name string) (limits.Document, error) {
	if s.down.Load() {
		<-ctx.Done()
		return limits.Document{}, errors.Join(errDown, ctx.Err())
	}
	return s.Store.ReadDocument(ctx, name)
}

// stack is the whole of a gate, in process.
type stack struct {
	t       testing.TB
	server  *Server
	store   *fragileStore
	log     *redistest.Output
	clock   atomic.Pointer[time.Time]
	observe func(route, method string, status int, took time.Duration)
	parts   []Part
}

// newStack makes a gate over the embedded Redis.
func newStack(t testing.TB) *stack {
	t.Helper()
	return newStackOn(t, redistest.Embedded(t))
}

func newStackOn(t testing.TB, client redis.UniversalClient) *stack {
	t.Helper()
	st := &stack{t: t, log: &redistest.Output{}, observe: func(string, string, int, time.Duration) {}}
	st.setClock(time.Date(2026, 12, 1, 9, 30, 0, 400_000, time.UTC))
	bolt, err := boltstore.Open(filepath.Join(t.TempDir(), "prefs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bolt.Close() })
	st.store = &fragileStore{Store: bolt}
	space, err := keyspace.New("api", 4)
	if err != nil {
		t.Fatal(err)
	}
	watch := func(name string) *guard.Guard {
		return guard.New(guard.Options{Name: name, Limit: 10 * time.Second, InFlight: 256, Answered: redisconn.Answered})
	}
	catalog := testCatalog(t)
	overlay := bloom.NewOverlay(10_000)
	overlay.SetLive(true)
	reader := prefs.NewReader(prefs.ReaderOptions{
		Cache: rediscache.New(client, space), Store: st.store, CacheGuard: watch("cache"), FillGuard: watch("fill"), StoreGuard: watch("store"),
		StoreLimit: 10 * time.Second, Observe: func(prefs.CacheOutcome) {},
	})
	t.Cleanup(reader.Close)
	now := func() time.Time { return *st.clock.Load() }
	carrier := prefs.NewCarrier(st.store, feed.NewPublisher(client, space, sendgate.SystemClock))
	t.Cleanup(carrier.Close)
	service := prefs.NewService(prefs.ServiceOptions{
		Store: st.store, Carrier: carrier, Overlay: overlay,
		Catalog: func() *sendgate.Catalog { return catalog }, Log: slog.New(slog.DiscardHandler), Now: now,
	})
	table := limits.NewTable()
	follower := limits.NewFollower(limits.FollowerOptions{Documents: st.store, Table: table, Log: slog.New(slog.DiscardHandler), Now: now})
	st.server = New(Options{
		Limits: limits.NewService(limits.ServiceOptions{
			Follower: follower, Catalog: func() *sendgate.Catalog { return catalog }, Log: slog.New(slog.DiscardHandler),
		}),
		Gate: sendgate.NewGate(sendgate.Options{
			Catalog: catalog, Overlay: overlay, Records: reader, Caps: freqcap.New(client, space, watch("caps")),
			Limits: table, Observer: noObserver{}, Now: now,
		}),
		Preferences: service,
		Ready:       func() []Part { return st.parts },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, "up 1\n")
		}),
		Observe: func(route, method string, status int, took time.Duration) { st.observe(route, method, status, took) },
		Log:     slog.New(slog.NewJSONHandler(st.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:     now,
	})
	return st
}

func (st *stack) setClock(at time.Time) { st.clock.Store(&at) }

// answer is what came back.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do sends one request. Headers are name, value, name, value.
func (st *stack) do(method, target, body string, headers ...string) *answer {
	st.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, target, r)
	if body != "" {
		req.Header.Set("Content-Type", jsonType)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Content-Type" {
			req.Header.Del("Content-Type")
		}
		if headers[i+1] != "" {
			req.Header.Add(headers[i], headers[i+1])
		}
	}
	return st.send(req)
}

func (st *stack) send(req *http.Request) *answer {
	st.t.Helper()
	w := httptest.NewRecorder()
	st.server.ServeHTTP(w, req)
	return &answer{st.t, w.Code, w.Header(), w.Body.Bytes()}
}

// ok demands 200 and returns the body.
func (a *answer) ok() map[string]any {
	a.t.Helper()
	if a.status != http.StatusOK {
		a.t.Fatalf("status %d, want 200: %s", a.status, a.body)
	}
	return a.json()
}

func (a *answer) json() map[string]any {
	a.t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(a.body, &doc); err != nil {
		a.t.Fatalf("the body is no JSON object: %v\n%s", err, a.body)
	}
	return doc
}

// refused demands a whole problem of a code, about a field.
func (a *answer) refused(status int, code sendgate.Code, field string) map[string]any {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		a.t.Errorf("content type %q", ct)
	}
	doc := a.json()
	got, _ := doc["field"].(string)
	if doc["code"] != string(code) || got != field {
		a.t.Fatalf("code %v field %q, want %s %q: %s", doc["code"], got, code, field, a.body)
	}
	if doc["type"] != problemTypes+string(code) || doc["status"] != float64(status) || doc["title"] == "" {
		a.t.Errorf("not a whole problem: %s", a.body)
	}
	return doc
}

const (
	user     = "u_42"
	prefsURL = "/v1/users/" + user + "/preferences"
)

// revision is the user's, as read.
func (st *stack) revision(user string) float64 {
	st.t.Helper()
	return st.do("GET", "/v1/users/"+user+"/preferences", "").ok()["revision"].(float64)
}

func checkOf(user, topic, channel string) string {
	data, err := json.Marshal(map[string]string{"notification_id": "n_1", "user_id": user, "topic": topic, "channel": channel})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// lines decodes what was logged.
func (st *stack) lines(t testing.TB) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(st.log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, m)
	}
	return lines
}
