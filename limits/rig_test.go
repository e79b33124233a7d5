package limits

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fresh is a store in memory: the real ones import this package, and are tested
// with it in store_test.go.
func fresh() *memory { return &memory{docs: map[string]Document{}} }

// faulty is a store that can be told what becomes of a call: fault is asked
// before it is passed on, and lost after a write was made.
type faulty struct {
	Documents
	mu    sync.Mutex
	fault func(ctx context.Context, call, name string) error
	lost  func(name string) error
}

var errFault = errors.New("a fault")

func (f *faulty) set(fault func(ctx context.Context, call, name string) error, lost func(name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.lost = fault, lost
}

func (f *faulty) faults() (fault func(ctx context.Context, call, name string) error, lost func(name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault, lost = f.fault, f.lost
	if fault == nil {
		fault = func(context.Context, string, string) error { return nil }
	}
	if lost == nil {
		lost = func(string) error { return nil }
	}
	return fault, lost
}

func (f *faulty) ReadDocument(ctx context.Context, name string) (Document, error) {
	fault, _ := f.faults()
	if err := fault(ctx, "read", name); err != nil {
		return Document{}, err
	}
	return f.Documents.ReadDocument(ctx, name)
}

func (f *faulty) WriteDocument(ctx context.Context, name string, body []byte, ifRevision int64) error {
	fault, lost := f.faults()
	if err := fault(ctx, "write", name); err != nil {
		return err
	}
	if err := f.Documents.WriteDocument(ctx, name, body, ifRevision); err != nil {
		return err
	}
	return lost(name)
}

// memory is the simplest store that there is.
type memory struct {
	mu   sync.Mutex
	docs map[string]Document
}

func (m *memory) ReadDocument(_ context.Context, name string) (Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.docs[name], nil
}

func (m *memory) WriteDocument(_ context.Context, name string, body []byte, ifRevision int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.docs[name].Revision != ifRevision {
		return ErrConflict
	}
	m.docs[name] = Document{ifRevision + 1, body}
	return nil
}

// gate is what one gate has of this package.
type gate struct {
	*Service
	t testing.TB
}

func newGate(t testing.TB, docs Documents) gate {
	t.Helper()
	limit := 3
	catalog, err := sendgate.NewCatalog(sendgate.CatalogSpec{
		DefaultTimezone: "UTC", Channels: []string{"push"},
		Categories: map[string]sendgate.CategorySpec{
			"security": {Class: "essential"},
			"marketing": {Class: "marketing", Caps: []sendgate.CapSpec{
				{By: []sendgate.Field{}, Window: "24h", Limit: &limit},
				{By: []sendgate.Field{"campaign_id"}, Window: "24h", Limit: &limit},
				{By: []sendgate.Field{"channel", "campaign_id"}, Window: "24h", Limit: &limit},
				{By: []sendgate.Field{"creative_id"}, Subject: "household_id", Window: "24h", Limit: &limit},
			}},
		},
		Topics: map[string]sendgate.TopicSpec{"news": {Category: "marketing"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	follower := NewFollower(FollowerOptions{Documents: docs, Table: NewTable(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
	return gate{NewService(ServiceOptions{Follower: follower, Catalog: func() *sendgate.Catalog { return catalog }, Log: slog.New(slog.DiscardHandler)}), t}
}

// day is a limit a day.
func day(n int) []sendgate.ValueLimit {
	return []sendgate.ValueLimit{{Window: sendgate.Duration(24 * time.Hour), Limit: n}}
}

func campaign(id string) Value { return Value{[]sendgate.Field{"campaign_id"}, []string{id}} }

func (g gate) must(id string, n int) {
	g.t.Helper()
	if _, err := g.Set(g.t.Context(), Entry{campaign(id), day(n)}, "test"); err != nil {
		g.t.Fatalf("setting %s to %d: %v", id, n, err)
	}
}

// obeys demands a campaign's limit a day; -1 is none.
func (g gate) obeys(id string, n int) {
	g.t.Helper()
	if got := g.limit(id); got != n {
		g.t.Errorf("the limit of %s is %d, not %d", id, got, n)
	}
}

func (g gate) limit(id string) int {
	of := g.table.Of([]sendgate.Field{"campaign_id"}, []string{id})
	if len(of) == 0 {
		return -1
	}
	return of[0].Limit
}

func (g gate) look(all bool) {
	g.t.Helper()
	if err := g.follower.look(g.t.Context(), all); err != nil {
		g.t.Fatal(err)
	}
}
