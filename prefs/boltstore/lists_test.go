package boltstore

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// What is called for an entry may write as much as it likes: a scan that held a
// transaction open would stop the file from growing its mapping, and hang.
func TestWriteWithinScan(t *testing.T) {
	s := openAt(t, newPath(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 20 {
		if err := s.Put(ctx, record(sendgate.UserID(fmt.Sprint("user-", i)), 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	blob := strings.Repeat("x", 300<<10)
	for _, walk := range []func() error{
		func() error {
			return s.Scan(ctx, 0, 1, func(r *prefs.Record) error {
				r.Pending[0].Reason = blob
				return s.Put(ctx, r, r.Revision)
			})
		},
		func() error {
			return s.Pending(ctx, 3, func(e prefs.PendingEntry) error {
				r, err := s.Get(ctx, e.User)
				if err != nil {
					return err
				}
				r.Pending = nil
				return s.Put(ctx, r, r.Revision)
			})
		},
	} {
		if err := walk(); err != nil {
			t.Error(err)
		}
	}
}

func TestSegmentsCoverAllSlots(t *testing.T) {
	for _, segments := range []int{1, 2, 3, 7, 16, 1000, slots - 1, slots, slots + 1, 3 * slots} {
		last := []byte{0, 0}
		for segment := range segments {
			from, to := segmentStart(segment, segments), segmentStart(segment+1, segments)
			if !bytes.Equal(from, last) || (to != nil && bytes.Compare(to, from) < 0) {
				t.Fatalf("segment %d of %d is [%x, %x), after one that ended at %x", segment, segments, from, to, last)
			}
			last = to
		}
		if last != nil {
			t.Errorf("%d segments end at %x", segments, last)
		}
	}
	const most = int(^uint(0) >> 1)
	if from := segmentStart(most-1, most); !bytes.Equal(from, []byte{0xff, 0xff}) {
		t.Errorf("the last of as many segments as there can be starts at %x", from)
	}
}

// A list of many chunks has every entry once and in its order.
func TestManyChunks(t *testing.T) {
	s := openAt(t, newPath(t))
	const shard, users = 3, 2*chunkEntries + 88
	var all sync.WaitGroup
	for i, n := 0, 0; n < users; i++ {
		user := sendgate.UserID(fmt.Sprint("user-", i))
		if prefs.PendingShard(user) != shard {
			continue
		}
		n++
		all.Go(func() {
			r := record(user, 1)
			r.Pending[0].At = time.UnixMilli(int64(i*7919%1000) - 500).UTC() // before 1970, too
			if err := s.Put(t.Context(), r, 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[sendgate.UserID]bool{}
	var last time.Time
	err := s.Pending(t.Context(), shard, func(e prefs.PendingEntry) error {
		if seen[e.User] || (!e.Since.IsZero() && e.Since.Before(last)) {
			t.Errorf("%q since %v comes twice, or after %v", e.User, e.Since, last)
		}
		seen[e.User] = true
		if !e.Since.IsZero() { // the epoch's own millisecond reads as no time
			last = e.Since
		}
		return nil
	})
	if err != nil || len(seen) != users {
		t.Errorf("%d of %d pending users are listed, %v", len(seen), users, err)
	}
	clear(seen)
	err = s.Scan(t.Context(), 0, 1, func(r *prefs.Record) error { seen[r.User] = true; return nil })
	if err != nil || len(seen) != users {
		t.Errorf("%d of %d users are scanned, %v", len(seen), users, err)
	}
}
