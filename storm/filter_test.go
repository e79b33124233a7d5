package storm_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

// bystanders is how many people are in the store, and in the filter, whom
// nobody changes: checks are about them. Every other one is opted out.
const bystanders = 4000

func bystander(i int) string { return fmt.Sprintf("bystander_%d", i%bystanders) }

// background stores the bystanders, as they are long after their last change.
func background(t testing.TB, store prefs.Store) {
	t.Helper()
	var writers errgroup.Group
	writers.SetLimit(128) // the store makes many writes in one
	for i := range bystanders {
		writers.Go(func() error {
			r := &prefs.Record{User: sendgate.UserID(bystander(i)), Preferences: sendgate.Preferences{
				Revision: 1, UpdatedAt: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
				Settings: sendgate.Settings{{Topic: "promotions", Channel: "push"}: i%2 == 1, {Topic: "newsletter", Channel: "email"}: true},
			}}
			return store.Put(t.Context(), r, 0)
		})
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
}

// silent is a rebuild's progress that nobody watches.
type silent struct{}

func (silent) Stage(rebuild.Stage)      {}
func (silent) Read(int)                 {}
func (silent) Done(*bloom.Built, error) {}

// buildFilter builds and publishes a filter of all who are stored.
func (f *fleet) buildFilter() *node.Filter {
	f.t.Helper()
	place, err := archive.Open(f.t.Context(), "file://"+f.t.TempDir(), namespace)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = place.Close() })
	_, err = rebuild.New(rebuild.Options{
		Store: f.store, Streams: feed.NewPublisher(f.client, f.space, sendgate.SystemClock), Archive: place, Namespace: namespace,
		Catalog: func() (*sendgate.Catalog, error) { return catalogfile.Sample(), nil },
		Memory:  1 << 20, MaxFalsePositive: 0.001, AimFalsePositive: 1e-6, Segments: 4, Keep: 3, Progress: silent{}, Now: time.Now,
	}).Once(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return &node.Filter{Archive: place, Poll: time.Second, MaxAge: time.Hour, MaxFalsePositive: 0.001}
}

var verifiesNothing = regexp.MustCompile(`(?m)^sendgate_filter_verifying 0$`)

// filtered tells whether a gate uses a filter and relies on it.
func (f *fleet) filtered(g *gate) bool {
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return verifiesNothing.Match(w.Body.Bytes()) && regexp.MustCompile(`(?m)^sendgate_filter_generation [1-9]`).Match(w.Body.Bytes())
}
