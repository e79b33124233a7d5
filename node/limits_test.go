package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/boltstore"
	"github.com/sendgate/sendgate/prefs/dynamostore"
)

// promise is what a change has to be in force everywhere.
const promise = 5 * time.Second

// byCampaign is the sample catalog, which counts promotions by campaign, 2 a day,
// and here lets a user have many of them.
func byCampaign(t *testing.T) func(*node.Options) {
	t.Helper()
	catalog, err := catalogfile.Parse("t", []byte(strings.Replace(string(catalogfile.SampleYAML()), "by: [category], window: 24h, limit: 5}",
		"by: [category], window: 24h, limit: 1000}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return func(o *node.Options) { o.Catalog = catalog }
}

// limit gives campaign c7 a limit a day; below 0 is none of its own.
func (g gate) limit(n int) {
	g.t.Helper()
	limit := ""
	if n >= 0 {
		limit = fmt.Sprintf(`{"window":"24h","limit":%d}`, n)
	}
	g.must(http.MethodPut, "/v1/limits", fmt.Sprintf(`{"by":["campaign_id"],"values":["c7"],"limits":[%s]}`, limit))
}

// goes asks for a notification of campaign c7, and tells whether it may go.
func (g gate) goes(id, user string) bool {
	g.t.Helper()
	a := g.must(http.MethodPost, "/v1/check", fmt.Sprintf(`{"notification_id":%q,"user_id":%q,"topic":"promotions","channel":"push","campaign_id":"c7"}`, id, user))
	return a["verdict"] == "allow"
}

// limitOf is the limit a day that a gate shows for campaign c7.
func (g gate) limitOf() int {
	g.t.Helper()
	a := g.must(http.MethodPost, "/v1/explain", `{"notification_id":"look","user_id":"nobody","topic":"promotions","channel":"push","campaign_id":"c7"}`)
	for _, c := range a["caps"].([]any) {
		if state := c.(map[string]any); fmt.Sprint(state["by"]) == "[campaign_id]" {
			return int(state["limit"].(float64))
		}
	}
	return -1
}

// obeys waits until a gate has a limit in force, and holds it to the promise.
func (g gate) obeys(want int) {
	g.t.Helper()
	began := time.Now()
	redistest.Until(g.t, fmt.Sprintf("a limit of %d is in force at the other gate", want), func() bool { return g.limitOf() == want })
	if took := time.Since(began); took > promise {
		g.t.Errorf("a limit of %d was in force after %v", want, took)
	}
}

// TestALimitOfACampaign is set at one gate and caps at the other, is lowered,
// raised and removed, and survives gates and the store's end.
func TestALimitOfACampaign(t *testing.T) {
	t.Run("bbolt", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		aLimitOfACampaign(t, func() prefs.Store {
			store, err := boltstore.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			return store
		})
	})
	t.Run("DynamoDB", func(t *testing.T) {
		o := dynamostore.Options{Config: dynamotest.Start(t).Config(), TablePrefix: "t", Create: true}
		aLimitOfACampaign(t, func() prefs.Store {
			store, err := dynamostore.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			return store
		})
	})
}

func aLimitOfACampaign(t *testing.T, open func() prefs.Store) {
	client, store, catalog := redistest.Start(t).Client(), open(), byCampaign(t)
	a, b := startGate(t, client, store, catalog).follows(), startGate(t, client, store, catalog).follows()
	if a.limitOf() != 2 || b.limitOf() != 2 {
		t.Errorf("at first: %d and %d", a.limitOf(), b.limitOf())
	}
	a.limit(1)
	if a.limitOf() != 1 {
		t.Errorf("where it was set: %d", a.limitOf())
	}
	b.obeys(1)
	if !b.goes("n1", "u") || b.goes("n2", "u") || a.goes("n3", "u") {
		t.Error("under a limit of 1 it is not one that went")
	}
	b.limit(3) // raised: what was counted counts
	a.obeys(3)
	if !a.goes("n2", "u") || !b.goes("n3", "u") || a.goes("n4", "u") {
		t.Error("raised to 3 it is not three that went")
	}
	a.limit(0)
	b.obeys(0)
	if b.goes("n1", "v") {
		t.Error("one went under a limit of 0")
	}
	a.limit(3)
	b.obeys(3)
	// All end and start again.
	a.Close()
	b.Close()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = open()
	t.Cleanup(func() { _ = store.Close() })
	c, d := startGate(t, client, store, catalog), startGate(t, client, store, catalog)
	if c.limitOf() != 3 || d.limitOf() != 3 || c.goes("n4", "u") {
		t.Errorf("after the restart: %d and %d", c.limitOf(), d.limitOf())
	}
	listed := c.must(http.MethodGet, "/v1/limits?by=campaign_id", "")
	if got := fmt.Sprint(listed["entries"]); got != "[map[by:[campaign_id] limits:[map[limit:3 window:24h]] values:[c7]]]" {
		t.Errorf("listed: %s", got)
	}
	c.limit(-1)
	d.obeys(2)
	if !d.goes("n1", "w") || !d.goes("n2", "w") || c.goes("n3", "w") {
		t.Error("removed, it is not the catalog's two that went")
	}
	if got := fmt.Sprint(d.must(http.MethodGet, "/v1/limits", "")["entries"]); got != "[]" {
		t.Errorf("listed at the end: %s", got)
	}
}

// unreadable is a store whose documents cannot be read for a while.
type unreadable struct {
	prefs.Store
	down atomic.Bool
}

func (u *unreadable) ReadDocument(ctx context.Context, name string) (limits.Document, error) {
	if u.down.Load() {
		return limits.Document{}, errors.New("down")
	}
	return u.Store.ReadDocument(ctx, name)
}

// TestLimitsThatCannotBeRead has a gate start without them, by the catalog's, and
// one that knew them keep them; both say for how long.
func TestLimitsThatCannotBeRead(t *testing.T) {
	client, store := redistest.Start(t).Client(), &unreadable{Store: openStore(t)}
	var ahead atomic.Int64
	options := func(o *node.Options) {
		byCampaign(t)(o)
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
	a := startGate(t, client, store, options).follows()
	a.limit(1)
	store.down.Store(true)
	b := startGate(t, client, store, options)
	ahead.Store(int64(time.Hour))
	if a.limitOf() != 1 || b.limitOf() != 2 {
		t.Errorf("while the store is down: %d and %d", a.limitOf(), b.limitOf())
	}
	for _, g := range []gate{a, b} {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if !strings.Contains(w.Body.String(), "\nsendgate_value_limits_age_seconds 36") {
			t.Error("the age is not told")
		}
	}
	if status, body := a.call(http.MethodGet, "/v1/limits", ""); status != http.StatusServiceUnavailable {
		t.Errorf("a list while the store is down: %d %v", status, body)
	}
	store.down.Store(false)
	b.obeys(1)
}
