package node_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

// place is where the filters of a test are published.
type place struct {
	*archive.Archive
	dir string
}

func newPlace(t testing.TB) place {
	t.Helper()
	dir := t.TempDir()
	a, err := archive.Open(t.Context(), "file://"+dir, "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return place{a, dir}
}

// file is the path of a published filter.
func (p place) file(generation int64) string {
	return filepath.Join(p.dir, fmt.Sprintf("t-%020d.filter", generation))
}

// filtered is a gate's options with the filters of a place.
func (p place) filtered(o *node.Options) {
	o.Filter = &node.Filter{Archive: p.Archive, Poll: 200 * time.Millisecond, MaxAge: time.Hour, VerifySample: 0, MaxFalsePositive: 0.001}
}

// silent is a rebuild's progress that nobody watches.
type silent struct{}

func (silent) Stage(rebuild.Stage)      {}
func (silent) Read(int)                 {}
func (silent) Done(*bloom.Built, error) {}

func newBuilder(t testing.TB, client redis.UniversalClient, store prefs.Scanner, p place) *rebuild.Builder {
	t.Helper()
	space, err := keyspace.New("t", 16)
	if err != nil {
		t.Fatal(err)
	}
	return rebuild.New(rebuild.Options{
		Store: store, Streams: feed.NewPublisher(client, space, sendgate.SystemClock), Archive: p, Namespace: "t",
		Catalog: func() (*sendgate.Catalog, error) { return catalogfile.Sample(), nil },
		Memory:  1 << 20, MaxFalsePositive: 0.001, AimFalsePositive: 1e-9, Segments: 4, Keep: 3, Progress: silent{}, Now: time.Now,
	})
}

func once(t testing.TB, b *rebuild.Builder) int64 {
	t.Helper()
	built, err := b.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return built.Header().Generation
}

// stored puts a record into a store with nothing pending, as it is long after
// its last change.
func stored(t testing.TB, store prefs.Store, user string, settings sendgate.Settings, holds ...sendgate.Hold) {
	t.Helper()
	r := &prefs.Record{User: sendgate.UserID(user), Preferences: sendgate.Preferences{
		Revision: 1, Settings: settings, Holds: holds, UpdatedAt: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
	}}
	if err := store.Put(t.Context(), r, 0); err != nil {
		t.Fatal(err)
	}
}

func push(topic string, on bool) sendgate.Settings {
	return sendgate.Settings{{Topic: topic, Channel: "push"}: on}
}

func (g gate) metric(name string) string {
	g.t.Helper()
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (.*)$`).FindStringSubmatch(w.Body.String())
	if found == nil {
		return ""
	}
	return found[1]
}

// uses waits until a gate uses a generation, and need not verify what that
// rejects.
func (g gate) uses(generation int64) {
	g.t.Helper()
	redistest.Until(g.t, fmt.Sprintf("generation %d is in use", generation), func() bool {
		return g.metric("sendgate_filter_generation") == fmt.Sprintf("%g", float64(generation)) && g.metric("sendgate_filter_verifying") == "0"
	})
}

// answer asks and returns verdict, reason, step and whether the answer is exact.
func (g gate) answer(user, topic, channel string) string {
	g.t.Helper()
	a := g.must(http.MethodPost, "/v1/check", fmt.Sprintf(`{"notification_id":"n","user_id":%q,"topic":%q,"channel":%q}`, user, topic, channel))
	return fmt.Sprint(a["verdict"], " ", a["reason"], " ", a["step"], " ", a["exact"])
}

func (g gate) isReady() bool {
	status, _ := g.call(http.MethodGet, "/readyz", "")
	return status == http.StatusOK
}
