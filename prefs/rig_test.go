package prefs_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/boltstore"
	"github.com/sendgate/sendgate/prefs/rediscache"
	"github.com/sendgate/sendgate/prefs/redisshares"
)

// rig is one gate's preferences on a Redis and a store, which rigs can share.
type rig struct {
	client  redis.UniversalClient
	space   *keyspace.Space
	store   *faultyStore
	cache   *rediscache.Cache
	overlay *bloom.Overlay
	carrier *prefs.Carrier
	service *prefs.Service
	reader  *prefs.Reader
	sweeper *prefs.Sweeper

	mu       sync.Mutex
	catalog  *sendgate.Catalog
	now      time.Time
	backlog  prefs.Backlog
	outcomes []prefs.CacheOutcome
}

func newRig(t *testing.T) *rig {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return newRigOn(t, redistest.Embedded(t), &faultyStore{Store: store})
}

func newRigOn(t *testing.T, client redis.UniversalClient, store *faultyStore) *rig {
	t.Helper()
	space, err := keyspace.New("t", 16)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{client: client, space: space, store: store, catalog: catalogfile.Sample(), now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	r.cache, r.overlay = rediscache.New(client, space), bloom.NewOverlay(1000)
	r.overlay.SetLive(true)
	r.announceBy(t, feed.NewPublisher(client, space, sendgate.SystemClock))
	r.reader = prefs.NewReader(prefs.ReaderOptions{
		Cache: r.cache, CacheGuard: guard.New(guard.Options{Name: "redis", Limit: 5 * time.Second, InFlight: 100}),
		FillGuard: guard.New(guard.Options{Name: "fill", Limit: 5 * time.Second, InFlight: 32}),
		Store:     store, StoreLimit: 5 * time.Second, StoreGuard: guard.New(guard.Options{Name: "store", Limit: 5 * time.Second, InFlight: 100}),
		Observe: func(o prefs.CacheOutcome) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.outcomes = append(r.outcomes, o)
		},
	})
	t.Cleanup(r.reader.Close)
	return r
}

// announceBy has changes be announced by an announcer.
func (r *rig) announceBy(t *testing.T, by prefs.Announcer) {
	log := slog.New(slog.DiscardHandler)
	r.carrier = prefs.NewCarrier(r.store, by)
	t.Cleanup(r.carrier.Close)
	r.service = prefs.NewService(prefs.ServiceOptions{
		Store: r.store, Carrier: r.carrier, Overlay: r.overlay, Catalog: r.currentCatalog, Log: log, Now: r.clock,
	})
	r.sweeper = prefs.NewSweeper(prefs.SweeperOptions{
		Store: r.store, Carrier: r.carrier, Cache: r.cache, Overlay: r.overlay, Shares: redisshares.New(r.client, r.space), Log: log, Now: r.clock,
		Observe: func(b prefs.Backlog, _ error) { r.backlog = b },
	})
}

func (r *rig) currentCatalog() *sendgate.Catalog {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.catalog
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// put is an edit of one setting.
func (r *rig) put(t *testing.T, user sendgate.UserID, topic, channel string, on *bool) *sendgate.Preferences {
	t.Helper()
	p, err := r.service.Update(t.Context(), user, prefs.Edit{Settings: []prefs.SettingEdit{{Topic: topic, Channel: channel, Enabled: on}}}, nil, prefs.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// read reads one user as a check does.
func (r *rig) read(t *testing.T, user sendgate.UserID, atLeast int64) *sendgate.Preferences {
	t.Helper()
	a := r.reader.Read(t.Context(), []sendgate.RecordAsk{{User: user, AtLeast: atLeast}})[0]
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	return a.Preferences
}

// streamLength is how many announcements a user's stream holds.
func (r *rig) streamLength(t *testing.T, user sendgate.UserID) int64 {
	t.Helper()
	n, err := r.client.XLen(t.Context(), r.space.Stream(r.space.Partition(user))).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// changes is a user's audit log.
func (r *rig) changes(t *testing.T, user sendgate.UserID) []prefs.Change {
	t.Helper()
	cs, err := r.service.Changes(t.Context(), user, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func on() *bool  { v := true; return &v }
func off() *bool { v := false; return &v }

// faultyStore is a store whose calls can be made to fail. The hooks are called
// around the real thing; nil ones do nothing.
type faultyStore struct {
	prefs.Store
	mu           sync.Mutex
	beforeGet    func(context.Context, sendgate.UserID) error
	afterGet     func(context.Context, *prefs.Record)
	beforePut    func(*prefs.Record) error
	afterPut     func(*prefs.Record, error) error
	append       func(prefs.Change) error
	afterPending func(error) error
	gets         int
}

func (s *faultyStore) Get(ctx context.Context, user sendgate.UserID) (*prefs.Record, error) {
	s.mu.Lock()
	s.gets++
	before, after := s.beforeGet, s.afterGet
	s.mu.Unlock()
	if before != nil {
		if err := before(ctx, user); err != nil {
			return nil, err
		}
	}
	r, err := s.Store.Get(ctx, user)
	if err == nil && after != nil {
		after(ctx, r)
	}
	return r, err
}

func (s *faultyStore) GetMany(ctx context.Context, users []sendgate.UserID) []prefs.Found {
	found := make([]prefs.Found, len(users))
	for i, user := range users {
		found[i].Record, found[i].Err = s.Get(ctx, user)
	}
	return found
}

func (s *faultyStore) Put(ctx context.Context, r *prefs.Record, ifRevision int64) error {
	s.mu.Lock()
	before, after := s.beforePut, s.afterPut
	s.mu.Unlock()
	if before != nil {
		if err := before(r); err != nil {
			return err
		}
	}
	err := s.Store.Put(ctx, r, ifRevision)
	if after != nil {
		return after(r, err)
	}
	return err
}

func (s *faultyStore) AppendChange(ctx context.Context, user sendgate.UserID, c prefs.Change) error {
	s.mu.Lock()
	hook := s.append
	s.mu.Unlock()
	if hook != nil {
		if err := hook(c); err != nil {
			return err
		}
	}
	return s.Store.AppendChange(ctx, user, c)
}

func (s *faultyStore) Pending(ctx context.Context, shard int, each func(prefs.PendingEntry) error) error {
	s.mu.Lock()
	hook := s.afterPending
	s.mu.Unlock()
	err := s.Store.Pending(ctx, shard, each)
	if hook != nil {
		err = hook(err)
	}
	return err
}

// set changes the hooks, or takes them away.
func (s *faultyStore) set(change func(*faultyStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beforeGet, s.afterGet, s.beforePut, s.afterPut, s.append, s.afterPending = nil, nil, nil, nil, nil, nil
	if change != nil {
		change(s)
	}
}

func (s *faultyStore) getCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets
}
