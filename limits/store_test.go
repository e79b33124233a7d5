package limits_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs/boltstore"
	"github.com/sendgate/sendgate/prefs/dynamostore"
)

// TestRealStores has several gates set limits at the same time, and one that
// starts later obey and list all of them, from each store that there is.
func TestRealStores(t *testing.T) {
	t.Run("bbolt", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		store, err := boltstore.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		setByMany(t, store)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if store, err = boltstore.Open(path); err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		foundByOne(t, store)
	})
	t.Run("DynamoDB", func(t *testing.T) {
		o := dynamostore.Options{Config: dynamotest.Start(t).Config(), TablePrefix: "t", Create: true}
		var stores []limits.Documents
		for range 3 {
			store, err := dynamostore.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			stores = append(stores, store)
		}
		setByMany(t, stores[0], stores[1])
		foundByOne(t, stores[2])
	})
}

const gates, each = 4, 20

func setByMany(t *testing.T, stores ...limits.Documents) {
	var all sync.WaitGroup
	for i := range gates {
		service, _, _ := newGate(t, stores[i%len(stores)])
		all.Go(func() {
			for j := range each {
				e := limits.Entry{Value: campaign(i, j), Limits: []sendgate.ValueLimit{{Window: sendgate.Duration(24 * time.Hour), Limit: j}}}
				if _, err := service.Set(t.Context(), e, "test"); err != nil {
					t.Errorf("setting %d-%d: %v", i, j, err)
				}
			}
			if _, err := service.Remove(t.Context(), campaign(i, 0), "test"); err != nil {
				t.Errorf("removing %d-0: %v", i, err)
			}
		})
	}
	all.Wait()
}

func foundByOne(t *testing.T, store limits.Documents) {
	service, follower, table := newGate(t, store)
	if err := follower.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range gates {
		for j := range each {
			v := campaign(i, j)
			of := table.Of(v.By, v.Values)
			if j == 0 && of != nil || j > 0 && (len(of) != 1 || of[0].Limit != j) {
				t.Errorf("%v: %v", v, of)
			}
		}
	}
	p, err := service.List(t.Context(), nil, "", 1000)
	if err != nil || len(p.Entries) != gates*(each-1) || p.Next != "" {
		t.Errorf("%d values are listed, next %q: %v", len(p.Entries), p.Next, err)
	}
}

func campaign(i, j int) limits.Value {
	return limits.Value{By: []sendgate.Field{"campaign_id"}, Values: []string{fmt.Sprintf("c%d-%d", i, j)}}
}

func newGate(t *testing.T, store limits.Documents) (*limits.Service, *limits.Follower, *limits.Table) {
	t.Helper()
	catalog, table, log := catalogfile.Sample(), limits.NewTable(), slog.New(slog.DiscardHandler)
	follower := limits.NewFollower(limits.FollowerOptions{Documents: store, Table: table, Log: log, Now: time.Now})
	service := limits.NewService(limits.ServiceOptions{Follower: follower, Catalog: func() *sendgate.Catalog { return catalog }, Log: log})
	return service, follower, table
}
