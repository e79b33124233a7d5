package oracle_test

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs"
)

// mapStore is a prefs.Store in maps: ten thousand histories would otherwise
// wait for the disk most of the time, and the stores have tests of their own.
type mapStore struct {
	mu      sync.Mutex
	layout  prefs.Layout
	records map[sendgate.UserID]*prefs.Record
	changes map[sendgate.UserID]map[int64]prefs.Change
}

var _ prefs.Store = (*mapStore)(nil)

func newMapStore() *mapStore {
	return &mapStore{records: map[sendgate.UserID]*prefs.Record{}, changes: map[sendgate.UserID]map[int64]prefs.Change{}}
}

func (s *mapStore) Layout(_ context.Context, initial prefs.Layout) (prefs.Layout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.layout.Partitions == 0 {
		s.layout = initial
	}
	return s.layout, nil
}

func (s *mapStore) Close() error { return nil }

// ReadDocument: no history has limits of single values.
func (s *mapStore) ReadDocument(context.Context, string) (limits.Document, error) {
	return limits.Document{}, nil
}

func (s *mapStore) WriteDocument(context.Context, string, []byte, int64) error {
	return limits.ErrConflict
}

func (s *mapStore) Get(_ context.Context, user sendgate.UserID) (*prefs.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[user]; r != nil {
		return r.Clone(), nil
	}
	return &prefs.Record{User: user}, nil
}

func (s *mapStore) GetMany(ctx context.Context, users []sendgate.UserID) []prefs.Found {
	found := make([]prefs.Found, len(users))
	for i, user := range users {
		found[i].Record, found[i].Err = s.Get(ctx, user)
	}
	return found
}

func (s *mapStore) Put(_ context.Context, r *prefs.Record, ifRevision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var stored int64
	if old := s.records[r.User]; old != nil {
		stored = old.Revision
	}
	if stored != ifRevision {
		return prefs.ErrConflict
	}
	s.records[r.User] = r.Clone()
	return nil
}

func (s *mapStore) AppendChange(_ context.Context, user sendgate.UserID, change prefs.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes[user] == nil {
		s.changes[user] = map[int64]prefs.Change{}
	}
	s.changes[user][change.Revision] = change
	return nil
}

func (s *mapStore) Changes(_ context.Context, user sendgate.UserID, after int64, limit int) (list []prefs.Change, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for revision, change := range s.changes[user] {
		if revision > after {
			list = append(list, change)
		}
	}
	slices.SortFunc(list, func(a, b prefs.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return list[:min(limit, len(list))], nil
}

func (s *mapStore) Pending(_ context.Context, shard int, each func(prefs.PendingEntry) error) error {
	s.mu.Lock()
	var entries []prefs.PendingEntry
	for user, r := range s.records {
		if len(r.Pending) > 0 && prefs.PendingShard(user) == shard {
			entries = append(entries, prefs.PendingEntry{User: user, Since: r.PendingSince()})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(entries, func(a, b prefs.PendingEntry) int { return a.Since.Compare(b.Since) })
	for _, e := range entries {
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

func (s *mapStore) Scan(_ context.Context, segment, _ int, each func(*prefs.Record) error) error {
	if segment != 0 {
		return nil // everything is in the first
	}
	s.mu.Lock()
	var all []*prefs.Record
	for _, r := range s.records {
		all = append(all, r.Clone())
	}
	s.mu.Unlock()
	for _, r := range all {
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}
