package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

var conditionTests = []test{
	{"a wrong revision conflicts and changes nothing", wrongRevision},
	{"of many first writers one wins", func(ctx context.Context, t *testing.T, s prefs.Store) {
		for revision := range int64(4) {
			oneWinner(ctx, t, s, revision)
		}
	}},
	{"many writers who try again lose no edit", noEditLost},
	{"a put may keep the revision", func(ctx context.Context, t *testing.T, s prefs.Store) {
		put(ctx, t, s, rich("u", 5), 0)
		cleared := rich("u", 5)
		cleared.Pending = nil
		put(ctx, t, s, cleared, 5)
		stored(ctx, t, s, cleared)
		put(ctx, t, s, rich("u", 6), 5)
		// Who saw revision 5 must not clear what revision 6 has pending.
		if err := s.Put(ctx, cleared, 5); !errors.Is(err, prefs.ErrConflict) {
			t.Errorf("a late clearing: %v, want ErrConflict", err)
		}
		stored(ctx, t, s, rich("u", 6))
	}},
}

func wrongRevision(ctx context.Context, t *testing.T, s prefs.Store) {
	conflicts := func(r *prefs.Record, ifRevision int64) {
		t.Helper()
		if err := s.Put(ctx, r, ifRevision); !errors.Is(err, prefs.ErrConflict) {
			t.Errorf("Put(%q, revision %d, if %d): %v, want ErrConflict", r.User, r.Revision, ifRevision, err)
		}
	}
	user := usersOf(3, 1)[0]
	conflicts(waiting(user, 2, day), 1)
	conflicts(waiting(user, 6, day), 5)
	stored(ctx, t, s, &prefs.Record{User: user})

	put(ctx, t, s, plain(user, 1), 0)
	put(ctx, t, s, plain(user, 2), 1)
	for _, wrong := range []int64{0, 1, 3, 1 << 40} {
		conflicts(waiting(user, 3, day), wrong)
		conflicts(waiting(user, wrong+1, day), wrong)
	}
	stored(ctx, t, s, plain(user, 2))
	if entries := pending(ctx, t, s, 3); len(entries) != 0 {
		t.Errorf("a put that was refused is in the pending index: %v", entries)
	}
}

// oneWinner has several writers replace a revision at the same time.
func oneWinner(ctx context.Context, t *testing.T, s prefs.Store, revision int64) {
	const writers = 16
	var all sync.WaitGroup
	outcomes := make([]error, writers)
	of := func(i int) *prefs.Record {
		r := plain("u", revision+1)
		r.Settings[sendgate.Setting{Topic: fmt.Sprint("writer-", i), Channel: "email"}] = true
		return r
	}
	for i := range writers {
		all.Go(func() { outcomes[i] = s.Put(ctx, of(i), revision) })
	}
	all.Wait()
	winner := slices.Index(outcomes, nil)
	if winner < 0 {
		t.Fatalf("nobody won revision %d: %v", revision+1, outcomes)
	}
	for i, err := range outcomes {
		if i != winner && !errors.Is(err, prefs.ErrConflict) {
			t.Errorf("beside the winner %d of revision %d, writer %d has the outcome %v, want ErrConflict", winner, revision+1, i, err)
		}
	}
	stored(ctx, t, s, of(winner))
}

// noEditLost has writers who read, add one setting, and put, until it succeeds.
func noEditLost(ctx context.Context, t *testing.T, s prefs.Store) {
	const writers = 24
	var all sync.WaitGroup
	won := make([]int64, writers)
	for i := range writers {
		all.Go(func() {
			for {
				r, err := s.Get(ctx, "u")
				if err != nil {
					t.Errorf("Get: %v", err)
					return
				}
				if r.Settings == nil {
					r.Settings = sendgate.Settings{}
				}
				r.Settings[sendgate.Setting{Topic: fmt.Sprint("topic-", i), Channel: "email"}] = true
				r.Revision++
				switch err := s.Put(ctx, r, r.Revision-1); {
				case err == nil:
					won[i] = r.Revision
					return
				case !errors.Is(err, prefs.ErrConflict):
					t.Errorf("Put: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	slices.Sort(won)
	for i, revision := range won {
		if revision != int64(i)+1 {
			t.Fatalf("%d writers won the revisions %v; want each from 1 on once", writers, won)
		}
	}
	if r := get(ctx, t, s, "u"); r.Revision != writers || len(r.Settings) != writers {
		t.Errorf("after %d edits: revision %d, %d settings", writers, r.Revision, len(r.Settings))
	}
}
