package storetest

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

var auditTests = []test{
	{"a user without changes", func(ctx context.Context, t *testing.T, s prefs.Store) {
		put(ctx, t, s, rich("u", 2), 0) // a record and its pending changes are not the log
		appendAll(ctx, t, s, "u2", change(1, day))
		listed(ctx, t, s, "u", 0, 10)
		listed(ctx, t, s, "unseen", 0, 10)
	}},
	{"by rising revision, after one, at most so many", auditOrder},
	{"appending again does no harm", func(ctx context.Context, t *testing.T, s prefs.Store) {
		for range 3 {
			appendAll(ctx, t, s, "u", change(1, day), change(2, day.Add(time.Second)))
		}
		listed(ctx, t, s, "u", 0, 10, change(1, day), change(2, day.Add(time.Second)))
	}},
	{"users apart", usersApart},
	{"more than a page", morePages},
}

func appendAll(ctx context.Context, t *testing.T, s prefs.Store, user sendgate.UserID, changes ...prefs.Change) {
	t.Helper()
	for _, c := range changes {
		if err := s.AppendChange(ctx, user, c); err != nil {
			t.Fatalf("AppendChange(%q, revision %d): %v", user, c.Revision, err)
		}
	}
}

// listed checks a list of the audit log.
func listed(ctx context.Context, t *testing.T, s prefs.Store, user sendgate.UserID, after int64, limit int, want ...prefs.Change) {
	t.Helper()
	got, err := s.Changes(ctx, user, after, limit)
	if err != nil {
		t.Fatalf("Changes(%q, %d, %d): %v", user, after, limit, err)
	}
	if d := diff(want, got); d != "" {
		t.Errorf("Changes(%q, %d, %d) (-want +got):\n%s", user, after, limit, d)
	}
}

func auditOrder(ctx context.Context, t *testing.T, s prefs.Store) {
	// The revisions neither come in their order, nor are they in it as text.
	revisions := []int64{1, 2, 9, 10, 11, 100, 255, 256, 1 << 32, 1 << 53}
	var all []prefs.Change
	for _, revision := range revisions {
		all = append(all, change(revision, day.Add(time.Duration(revision%1000)*time.Second)))
	}
	for _, i := range []int{3, 0, 7, 1, 9, 2, 8, 6, 4, 5} {
		appendAll(ctx, t, s, "u", all[i])
	}
	listed(ctx, t, s, "u", 0, 100, all...)
	listed(ctx, t, s, "u", 0, 10, all...)
	listed(ctx, t, s, "u", 0, 4, all[:4]...)
	listed(ctx, t, s, "u", 0, 1, all[0])
	listed(ctx, t, s, "u", 1, 100, all[1:]...)
	listed(ctx, t, s, "u", 9, 2, all[3:5]...)
	listed(ctx, t, s, "u", 50, 100, all[5:]...) // of a revision that is not there
	listed(ctx, t, s, "u", 255, 1, all[7])
	listed(ctx, t, s, "u", 1<<53-1, 100, all[9])
	listed(ctx, t, s, "u", 1<<53, 100)
	listed(ctx, t, s, "u", math.MaxInt64, 100)
}

func usersApart(ctx context.Context, t *testing.T, s prefs.Store) {
	// Some are the start of others, go on as a key with a revision might, or
	// stand next to them in some order.
	us := []sendgate.UserID{
		"a", "a ", "a!", "a#", "a#1", "a#é", "a/", "a/1", "a/é", "a0", "a1", "a:", "a:1", "a:é", "a|é", "aa", "ab", "aé", "a\u00a0", "a\U0010ffff", "b",
		"a:00000001", "a#00000000000000000001", "a/é1234567",
	}
	for i, user := range us {
		appendAll(ctx, t, s, user, change(int64(i)+1, day), change(int64(i)+2, day))
	}
	for i, user := range us {
		listed(ctx, t, s, user, 0, 100, change(int64(i)+1, day), change(int64(i)+2, day))
		listed(ctx, t, s, user, int64(i)+1, 100, change(int64(i)+2, day))
	}
}

// morePages lists more bytes than stores answer with at once.
func morePages(ctx context.Context, t *testing.T, s prefs.Store) {
	var all []prefs.Change
	for revision := range int64(40) {
		c := change(revision+1, day)
		c.What[0].Before, _ = json.Marshal(strings.Repeat("x", 64<<10))
		all = append(all, c)
	}
	appendAll(ctx, t, s, "u", all...)
	listed(ctx, t, s, "u", 0, 1000, all...)
	listed(ctx, t, s, "u", 3, 30, all[3:33]...)
}
