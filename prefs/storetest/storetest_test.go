package storetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs"
)

// The suite asks for no more than the interfaces promise: a store of maps passes,
// with an index that lags behind its records.
func TestSuite(t *testing.T) {
	Run(t, func(*testing.T) prefs.Store {
		return &mapStore{records: map[sendgate.UserID][]byte{}, index: map[sendgate.UserID]prefs.PendingEntry{}, changes: map[sendgate.UserID]map[int64][]byte{}, docs: map[string]limits.Document{}}
	})
}

// mapStore is the simplest store that there is.
type mapStore struct {
	mu      sync.Mutex
	records map[sendgate.UserID][]byte
	changes map[sendgate.UserID]map[int64][]byte
	layout  prefs.Layout
	docs    map[string]limits.Document

	// index is what the pending index shows; late are the puts that it does not
	// show yet. Each call of Pending brings it forward by one.
	index map[sendgate.UserID]prefs.PendingEntry
	late  []*prefs.Record
}

func (s *mapStore) Get(ctx context.Context, user sendgate.UserID) (*prefs.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.records[user]
	if !ok {
		return &prefs.Record{User: user}, ctx.Err()
	}
	r, err := prefs.DecodeRecord(data)
	return r, cmp.Or(ctx.Err(), err)
}

func (s *mapStore) Put(ctx context.Context, record *prefs.Record, ifRevision int64) error {
	stored, err := s.Get(ctx, record.User)
	if err != nil {
		return err
	}
	data, err := prefs.EncodeRecord(record)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.records[record.User]; ok {
		if stored, err = prefs.DecodeRecord(now); err != nil {
			return err
		}
	}
	if stored.Revision != ifRevision {
		return prefs.ErrConflict
	}
	s.records[record.User] = data
	s.late = append(s.late, record.Clone())
	return nil
}

func (s *mapStore) GetMany(ctx context.Context, users []sendgate.UserID) []prefs.Found {
	found := make([]prefs.Found, len(users))
	for i, user := range users {
		found[i].Record, found[i].Err = s.Get(ctx, user)
	}
	return found
}

func (s *mapStore) Pending(ctx context.Context, shard int, each func(prefs.PendingEntry) error) error {
	s.mu.Lock()
	if len(s.late) > 0 {
		r := s.late[0]
		s.late = s.late[1:]
		delete(s.index, r.User)
		if len(r.Pending) > 0 {
			s.index[r.User] = prefs.PendingEntry{User: r.User, Since: r.PendingSince().Truncate(1e6), Revision: r.Revision}
		}
	}
	entries := slices.SortedFunc(maps.Values(s.index), func(a, b prefs.PendingEntry) int { return a.Since.Compare(b.Since) })
	s.mu.Unlock()
	for _, e := range entries {
		if prefs.PendingShard(e.User) != shard {
			continue
		}
		if err := cmp.Or(ctx.Err(), each(e)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *mapStore) Scan(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
	s.mu.Lock()
	table := maps.Clone(s.records)
	s.mu.Unlock()
	for user, data := range table {
		if xxhash.Sum64String(string(user))%uint64(segments) != uint64(segment) {
			continue
		}
		r, err := prefs.DecodeRecord(data)
		if err != nil {
			return err
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *mapStore) AppendChange(ctx context.Context, user sendgate.UserID, change prefs.Change) error {
	data, err := prefs.EncodeChange(change)
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes[user] == nil {
		s.changes[user] = map[int64][]byte{}
	}
	s.changes[user][change.Revision] = data
	return nil
}

func (s *mapStore) Changes(ctx context.Context, user sendgate.UserID, after int64, limit int) (list []prefs.Change, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, revision := range slices.Sorted(maps.Keys(s.changes[user])) {
		if revision <= after || len(list) >= limit {
			continue
		}
		c, err := prefs.DecodeChange(s.changes[user][revision])
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, ctx.Err()
}

func (s *mapStore) Layout(ctx context.Context, initial prefs.Layout) (prefs.Layout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return prefs.Layout{}, err
	}
	s.layout = cmp.Or(s.layout, initial)
	return s.layout, nil
}

func (s *mapStore) ReadDocument(ctx context.Context, name string) (limits.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.docs[name]
	return limits.Document{Revision: d.Revision, Body: slices.Clone(d.Body)}, ctx.Err()
}

func (s *mapStore) WriteDocument(ctx context.Context, name string, body []byte, ifRevision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.docs[name].Revision != ifRevision {
		return limits.ErrConflict
	}
	s.docs[name] = limits.Document{Revision: ifRevision + 1, Body: slices.Clone(body)}
	return nil
}

func (s *mapStore) Close() error { return nil }
