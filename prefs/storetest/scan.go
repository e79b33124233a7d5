package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

var scanTests = []test{
	{"an empty table", func(ctx context.Context, t *testing.T, s prefs.Store) {
		for _, segments := range []int{1, 7} {
			if seen := scanAll(ctx, t, s, segments); len(seen) != 0 {
				t.Errorf("%d segments of an empty table have %d records", segments, len(seen))
			}
		}
	}},
	{"the segments together are the table", wholeTable},
	{"more than a page", scanPages},
	{"it sees the write before it", scanFresh},
	{"an error ends a segment", errorEndsScan},
	{"writes meanwhile do no harm", writesMeanwhile},
}

// scanAll scans all segments at the same time, and fails if a user comes twice.
func scanAll(ctx context.Context, t *testing.T, s prefs.Store, segments int) map[sendgate.UserID]*prefs.Record {
	t.Helper()
	seen := map[sendgate.UserID]*prefs.Record{}
	var mu sync.Mutex
	scanEach(ctx, t, s, segments, func(r *prefs.Record) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[r.User] != nil {
			t.Errorf("a scan in %d segments comes upon %q twice", segments, r.User)
		}
		seen[r.User] = r
		return nil
	})
	return seen
}

// scanEach scans all segments at the same time, a few more than a store may
// have connections.
func scanEach(ctx context.Context, t *testing.T, s prefs.Store, segments int, each func(*prefs.Record) error) {
	t.Helper()
	var all sync.WaitGroup
	places := make(chan struct{}, 16)
	for segment := range segments {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if err := s.Scan(ctx, segment, segments, each); err != nil {
				t.Errorf("Scan(%d, %d): %v", segment, segments, err)
			}
		})
	}
	all.Wait()
}

func wholeTable(ctx context.Context, t *testing.T, s prefs.Store) {
	us := users(60)
	for _, user := range us {
		put(ctx, t, s, rich(user, 2), 0)
	}
	for _, segments := range []int{1, 2, 3, 8, 100} { // the last has more than there are users
		seen := scanAll(ctx, t, s, segments)
		if len(seen) != len(us) {
			t.Errorf("%d segments have %d of %d users", segments, len(seen), len(us))
		}
		for _, user := range us {
			if d := diff(rich(user, 2), seen[user]); d != "" {
				t.Fatalf("in a scan of %d segments, the record of %q (-want +got):\n%s", segments, user, d)
			}
		}
	}
}

// scanPages scans more bytes than stores answer with at once.
func scanPages(ctx context.Context, t *testing.T, s prefs.Store) {
	us := users(40)
	for _, user := range us {
		r := rich(user, 2)
		r.Pending[0].What[0].Before, _ = json.Marshal(strings.Repeat("x", 100<<10))
		put(ctx, t, s, r, 0)
	}
	for _, segments := range []int{1, 3} {
		if seen := scanAll(ctx, t, s, segments); len(seen) != len(us) {
			t.Errorf("%d segments have %d of %d users", segments, len(seen), len(us))
		}
	}
}

// scanFresh scans right after each write: what was answered is there.
func scanFresh(ctx context.Context, t *testing.T, s prefs.Store) {
	for i, user := range users(10) {
		put(ctx, t, s, plain(user, 1), 0)
		put(ctx, t, s, plain(user, 2), 1)
		seen := scanAll(ctx, t, s, 1+i%3)
		if len(seen) != i+1 {
			t.Errorf("a scan right after writing %d users sees %d", i+1, len(seen))
		}
		if r := seen[user]; r == nil || r.Revision != 2 {
			t.Errorf("a scan right after writing revision 2 of %q sees %v", user, r)
		}
	}
}

func errorEndsScan(ctx context.Context, t *testing.T, s prefs.Store) {
	for _, user := range users(30) {
		put(ctx, t, s, plain(user, 1), 0)
	}
	stop := errors.New("stop")
	calls := 0
	err := s.Scan(ctx, 0, 1, func(*prefs.Record) error {
		if calls++; calls == 5 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("Scan returns %v, want the error of each", err)
	}
	if calls != 5 {
		t.Errorf("each is called %d times, though its call 5 returned an error", calls)
	}
	if seen := scanAll(ctx, t, s, 4); len(seen) != 30 {
		t.Errorf("the scan after it sees %d of 30 users", len(seen))
	}
}

// writesMeanwhile scans while others write, and writes from within the scan. A
// user who was there before must come, at least as new as then.
func writesMeanwhile(ctx context.Context, t *testing.T, s prefs.Store) {
	us := users(40)
	for _, user := range us {
		put(ctx, t, s, plain(user, 1), 0)
	}
	var others sync.WaitGroup
	over := make(chan struct{})
	var created atomic.Int64
	others.Go(func() {
		for i := range 1000 {
			select {
			case <-over:
				return
			default:
			}
			if err := s.Put(ctx, plain(sendgate.UserID(fmt.Sprint("new-", i)), 1), 0); err != nil {
				t.Errorf("Put: %v", err)
				return
			}
			created.Add(1)
		}
	})
	var mu sync.Mutex
	seen := map[sendgate.UserID]int64{}
	scanEach(ctx, t, s, 4, func(r *prefs.Record) error {
		mu.Lock()
		seen[r.User] = max(seen[r.User], r.Revision)
		mu.Unlock()
		if strings.HasPrefix(string(r.User), "new-") || r.Revision > 3 {
			return nil
		}
		err := s.Put(ctx, plain(r.User, r.Revision+1), r.Revision)
		if errors.Is(err, prefs.ErrConflict) { // what is scanned need not be the newest
			return nil
		}
		return err
	})
	close(over)
	others.Wait()
	for _, user := range us {
		if seen[user] < 1 {
			t.Errorf("a scan during writes misses %q", user)
		}
	}
	if want := len(us) + int(created.Load()); len(scanAll(ctx, t, s, 4)) != want {
		t.Errorf("after the writes a scan does not see all of %d users", want)
	}
}
