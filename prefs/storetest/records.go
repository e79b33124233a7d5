package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

var recordTests = []test{
	{"a user of whom nothing is stored", func(ctx context.Context, t *testing.T, s prefs.Store) {
		put(ctx, t, s, rich("somebody else", 2), 0)
		for _, user := range oddUsers {
			stored(ctx, t, s, &prefs.Record{User: user})
		}
	}},
	{"every member comes back", everyMember},
	{"odd ids are distinct users", oddIDs},
	{"a record of nearly the most bytes", func(ctx context.Context, t *testing.T, s prefs.Store) {
		r := large(t, oddUsers[len(oddUsers)-1]) // with the longest id, which takes room too
		put(ctx, t, s, r, 0)
		stored(ctx, t, s, r)
		next := plain(r.User, r.Revision+1)
		put(ctx, t, s, next, r.Revision)
		stored(ctx, t, s, next)
	}},
	{"many at once", manyAtOnce},
	{"a returned record is the caller's", callersOwn},
	{"a stored record is not the caller's any more", func(ctx context.Context, t *testing.T, s prefs.Store) {
		r := rich("u", 4)
		put(ctx, t, s, r, 0)
		scribble(r)
		stored(ctx, t, s, rich("u", 4))
	}},
}

// manyAtOnce reads more records than any store does in one call, and more
// bytes: some of them large, some of nobody, one of them twice.
func manyAtOnce(ctx context.Context, t *testing.T, s prefs.Store) {
	want := map[sendgate.UserID]*prefs.Record{}
	var users []sendgate.UserID
	for i := range 250 {
		user := sendgate.UserID(fmt.Sprint("user ", i))
		users = append(users, user)
		switch {
		case i%3 == 0:
			want[user] = &prefs.Record{User: user}
			continue
		case i%50 == 1:
			want[user] = large(t, user)
		default:
			want[user] = rich(user, int64(i)+1)
		}
		put(ctx, t, s, want[user], 0)
	}
	users = append(users, "user 1")
	found := s.GetMany(ctx, users)
	if len(found) != len(users) {
		t.Fatalf("%d of %d are answered", len(found), len(users))
	}
	for i, user := range users {
		if found[i].Err != nil {
			t.Fatalf("%s: %v", user, found[i].Err)
		}
		if d := diff(want[user], found[i].Record); d != "" {
			t.Errorf("%s (-want +got):\n%s", user, d)
		}
	}
	scribble(found[2].Record)
	scribble(found[250].Record)
	stored(ctx, t, s, want["user 2"])
	stored(ctx, t, s, want["user 1"])
	if d := diff(want["user 1"], found[1].Record); d != "" {
		t.Errorf("what was read twice is shared (-want +got):\n%s", d)
	}
	if got := s.GetMany(ctx, nil); len(got) != 0 {
		t.Errorf("nobody: %+v", got)
	}
}

func everyMember(ctx context.Context, t *testing.T, s prefs.Store) {
	zoneOnly := rich("zone only", 2)
	zoneOnly.QuietHours = &sendgate.QuietHours{Timezone: "Asia/Calcutta"}
	bare := rich("bare", 2)
	bare.QuietHours = &sendgate.QuietHours{}
	empty := &prefs.Record{User: "empty", Preferences: sendgate.Preferences{Revision: 2}}
	late := rich("of a late revision", 1<<53+1)
	for _, r := range []*prefs.Record{rich("rich", 2), zoneOnly, bare, empty, late} {
		put(ctx, t, s, r, 0)
		stored(ctx, t, s, r)
	}
	// The next revision takes the place of the whole record.
	put(ctx, t, s, plain("rich", 3), 2)
	stored(ctx, t, s, plain("rich", 3))
	stored(ctx, t, s, zoneOnly)
}

func oddIDs(ctx context.Context, t *testing.T, s prefs.Store) {
	for i, user := range oddUsers {
		if err := user.Validate(""); err != nil {
			t.Fatalf("this test uses an id that is not legal, %q: %v", user, err)
		}
		put(ctx, t, s, rich(user, int64(i)+1), 0)
		if err := s.AppendChange(ctx, user, change(int64(i)+1, day)); err != nil {
			t.Fatalf("AppendChange(%q): %v", user, err)
		}
	}
	for i, user := range oddUsers {
		stored(ctx, t, s, rich(user, int64(i)+1))
		listed(ctx, t, s, user, 0, 10, change(int64(i)+1, day))
	}
	seen := scanAll(ctx, t, s, 3)
	if len(seen) != len(oddUsers) {
		t.Errorf("a scan finds %d of %d users", len(seen), len(oddUsers))
	}
	for i, user := range oddUsers {
		if d := diff(rich(user, int64(i)+1), seen[user]); d != "" {
			t.Errorf("the scanned record of %q (-want +got):\n%s", user, d)
		}
	}
	eventually(ctx, t, "every odd id is listed", func() bool {
		found := map[sendgate.UserID]bool{}
		for shard := range prefs.PendingShards {
			for _, entry := range pending(ctx, t, s, shard) {
				found[entry.User] = true
			}
		}
		for _, user := range oddUsers {
			if !found[user] {
				return false
			}
		}
		return len(found) == len(oddUsers)
	})
}

func callersOwn(ctx context.Context, t *testing.T, s prefs.Store) {
	put(ctx, t, s, rich("u", 4), 0)
	scribble(get(ctx, t, s, "u"))
	stored(ctx, t, s, rich("u", 4))
	unseen := get(ctx, t, s, "unseen")
	unseen.Revision, unseen.Pending = 9, rich("u", 4).Pending
	stored(ctx, t, s, &prefs.Record{User: "unseen"})
}

// scribble changes everything that can be reached from a rich record.
func scribble(r *prefs.Record) {
	for setting, on := range r.Settings {
		r.Settings[setting] = !on
	}
	r.Settings[sendgate.Setting{Topic: "scribble", Channel: "push"}] = true
	r.QuietHours.Timezone, r.QuietHours.Window.Start = "Etc/UTC", 1
	r.Caps[0].MaxCount, r.Holds[0].Reason = 99, "scribble"
	for i := range r.Pending {
		r.Pending[i].ID = "scribble"
		for j := range r.Pending[i].What {
			r.Pending[i].What[j].Topic = "scribble"
			for k := range r.Pending[i].What[j].After {
				r.Pending[i].What[j].After[k] = '9'
			}
		}
	}
	r.Revision = 99
}
