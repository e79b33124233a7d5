package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs"
)

var layoutTests = []test{
	{"the first one stays", func(ctx context.Context, t *testing.T, s prefs.Store) {
		for _, initial := range []int{32, 32, 256, 1} {
			if got, err := s.Layout(ctx, prefs.Layout{Partitions: initial}); err != nil || got.Partitions != 32 {
				t.Errorf("Layout(%d) = %v, %v; the first was 32", initial, got, err)
			}
		}
	}},
	{"all who ask first at the same time agree", func(ctx context.Context, t *testing.T, s prefs.Store) {
		var all sync.WaitGroup
		got := make([]prefs.Layout, 8)
		for i := range got {
			all.Go(func() {
				var err error
				if got[i], err = s.Layout(ctx, prefs.Layout{Partitions: i + 1}); err != nil {
					t.Errorf("Layout: %v", err)
				}
			})
		}
		all.Wait()
		for _, layout := range got {
			if layout != got[0] || layout.Partitions < 1 || layout.Partitions > len(got) {
				t.Fatalf("the layouts that were answered: %v", got)
			}
		}
	}},
	{"a layout is no user", func(ctx context.Context, t *testing.T, s prefs.Store) {
		if _, err := s.Layout(ctx, prefs.Layout{Partitions: 8}); err != nil {
			t.Fatal(err)
		}
		if seen := scanAll(ctx, t, s, 2); len(seen) != 0 {
			t.Errorf("a scan of a store that has only a layout: %v", seen)
		}
		for _, user := range oddUsers {
			stored(ctx, t, s, &prefs.Record{User: user})
		}
	}},
}

var contextTests = []test{
	{"one that has ended is an error, and nothing is written", func(ctx context.Context, t *testing.T, s prefs.Store) {
		user := usersOf(2, 1)[0]
		put(ctx, t, s, plain(user, 1), 0)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, getErr := s.Get(ended, user)
		_, changesErr := s.Changes(ended, user, 0, 10)
		_, layoutErr := s.Layout(ended, prefs.Layout{Partitions: 8})
		_, documentErr := s.ReadDocument(ended, "d")
		for call, err := range map[string]error{
			"ReadDocument": documentErr, "WriteDocument": s.WriteDocument(ended, "d", nil, 0),
			"Get": getErr, "Changes": changesErr, "Layout": layoutErr,
			"Put":          s.Put(ended, waiting(user, 2, day), 1),
			"AppendChange": s.AppendChange(ended, user, change(2, day)),
			"Pending":      s.Pending(ended, 2, func(prefs.PendingEntry) error { return nil }),
			"Scan":         s.Scan(ended, 0, 1, func(*prefs.Record) error { return nil }),
		} {
			if err == nil || errors.Is(err, prefs.ErrConflict) || errors.Is(err, limits.ErrConflict) {
				t.Errorf("%s with a context that has ended: %v", call, err)
			}
		}
		stored(ctx, t, s, plain(user, 1))
		reads(ctx, t, s, "d", 0, nil)
		listed(ctx, t, s, user, 0, 10)
		if entries := pending(ctx, t, s, 2); len(entries) != 0 {
			t.Errorf("the pending index lists %v", entries)
		}
		if got, err := s.Layout(ctx, prefs.Layout{Partitions: 16}); err != nil || got.Partitions != 16 {
			t.Errorf("Layout(16) = %v, %v, though the 8 before it came with a context that had ended", got, err)
		}
	}},
}
