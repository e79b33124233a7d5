package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

var pendingTests = []test{
	{"nothing is pending at first", func(ctx context.Context, t *testing.T, s prefs.Store) {
		put(ctx, t, s, plain("u", 1), 0)
		for shard := range prefs.PendingShards {
			if entries := pending(ctx, t, s, shard); len(entries) != 0 {
				t.Errorf("shard %d lists %v", shard, entries)
			}
		}
	}},
	{"the longest pending come first, in the shard of their user", longestFirst},
	{"an entry goes with what is pending", entryGoes},
	{"since is the oldest pending change", oldestChange},
	{"an error ends a list", errorEndsList},
}

// pending lists a shard.
func pending(ctx context.Context, t *testing.T, s prefs.Store, shard int) (entries []prefs.PendingEntry) {
	t.Helper()
	err := s.Pending(ctx, shard, func(e prefs.PendingEntry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		t.Fatalf("Pending(%d): %v", shard, err)
	}
	return entries
}

// listsPending waits until a shard lists exactly these, in this order.
func listsPending(ctx context.Context, t *testing.T, s prefs.Store, shard int, want ...prefs.PendingEntry) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("shard %d last (-want +got):\n%s", shard, last)
		}
	}()
	eventually(ctx, t, "the entries wanted, in their order", func() bool {
		last = diff(want, pending(ctx, t, s, shard))
		return last == ""
	})
}

func longestFirst(ctx context.Context, t *testing.T, s prefs.Store) {
	const shard = 5
	us := usersOf(shard, 7)
	// In seconds; the order of writing is neither the order of age nor, read
	// as text, that of the numbers.
	ages := []int{30, 9, 1000, 100, -5, 10, 99}
	var want []prefs.PendingEntry
	for i, user := range us {
		since := day.Add(-time.Duration(ages[i]) * time.Second)
		put(ctx, t, s, waiting(user, 1, since), 0)
		want = append(want, prefs.PendingEntry{User: user, Since: since, Revision: 1})
	}
	put(ctx, t, s, waiting(usersOf(shard+1, 1)[0], 1, day), 0)
	slices.SortFunc(want, func(a, b prefs.PendingEntry) int { return a.Since.Compare(b.Since) })
	listsPending(ctx, t, s, shard, want...)
	listsPending(ctx, t, s, shard+1, prefs.PendingEntry{User: usersOf(shard+1, 1)[0], Since: day, Revision: 1})
	for other := range prefs.PendingShards {
		if other != shard && other != shard+1 && len(pending(ctx, t, s, other)) != 0 {
			t.Errorf("shard %d lists users of other shards", other)
		}
	}
}

func entryGoes(ctx context.Context, t *testing.T, s prefs.Store) {
	us := usersOf(0, 2)
	kept := prefs.PendingEntry{User: us[1], Since: day.Add(time.Second), Revision: 1}
	put(ctx, t, s, waiting(us[0], 1, day), 0)
	put(ctx, t, s, waiting(us[1], 1, kept.Since), 0)
	listsPending(ctx, t, s, 0, prefs.PendingEntry{User: us[0], Since: day, Revision: 1}, kept)
	put(ctx, t, s, plain(us[0], 1), 1) // cleared, as the revision stays
	listsPending(ctx, t, s, 0, kept)
	put(ctx, t, s, waiting(us[0], 2, day.Add(time.Hour)), 1)
	listsPending(ctx, t, s, 0, kept, prefs.PendingEntry{User: us[0], Since: day.Add(time.Hour), Revision: 2})
	put(ctx, t, s, plain(us[0], 3), 2) // cleared by an edit
	put(ctx, t, s, plain(us[1], 1), 1)
	listsPending(ctx, t, s, 0)
}

func oldestChange(ctx context.Context, t *testing.T, s prefs.Store) {
	user := usersOf(prefs.PendingShards-1, 1)[0]
	lists := func(since time.Time, revision int64) {
		t.Helper()
		listsPending(ctx, t, s, prefs.PendingShards-1, prefs.PendingEntry{User: user, Since: since.Truncate(time.Millisecond), Revision: revision})
	}
	first, second := day.Add(1999*time.Microsecond), day.Add(time.Minute)
	put(ctx, t, s, waiting(user, 1, first), 0)
	lists(first, 1)
	both := waiting(user, 1, first)
	both.Pending = append(both.Pending, change(2, second))
	both.Revision = 2
	put(ctx, t, s, both, 1)
	lists(first, 2)
	rest := both.Clone()
	rest.Pending = rest.Pending[1:]
	put(ctx, t, s, rest, 2)
	lists(second, 2)
}

func errorEndsList(ctx context.Context, t *testing.T, s prefs.Store) {
	us := usersOf(9, 3)
	var all []prefs.PendingEntry
	for i, user := range us {
		since := day.Add(time.Duration(i) * time.Second)
		put(ctx, t, s, waiting(user, 1, since), 0)
		all = append(all, prefs.PendingEntry{User: user, Since: since, Revision: 1})
	}
	listsPending(ctx, t, s, 9, all...)
	stop := errors.New("stop")
	var seen []sendgate.UserID
	err := s.Pending(ctx, 9, func(e prefs.PendingEntry) error {
		if seen = append(seen, e.User); len(seen) == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("Pending returns %v, want the error of each", err)
	}
	if d := diff(us[:2], seen); d != "" {
		t.Errorf("listed before and after the error (-want +got):\n%s", d)
	}
}
