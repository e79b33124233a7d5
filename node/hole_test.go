package node_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
)

// carried clears what is pending of a user, as it is half a minute after a
// change: no sweep tells of it any more.
func carried(t *testing.T, store prefs.Store, user string) {
	t.Helper()
	r, err := store.Get(t.Context(), sendgate.UserID(user))
	if err != nil {
		t.Fatal(err)
	}
	r.Pending = nil
	if err := store.Put(t.Context(), r, r.Revision); err != nil {
		t.Fatal(err)
	}
}

// TestAGateThatStartsAtAHole has two users of one partition change twice since
// the filter was built. The stream has lost an entry between, so that whoever
// starts now can read of their first changes only. It answers as one that was
// there all along.
func TestAGateThatStartsAtAHole(t *testing.T) {
	client, store, p := redistest.Start(t).Client(), openStore(t), newPlace(t)
	once(t, newBuilder(t, client, store, p))
	space, err := keyspace.New("t", 16)
	if err != nil {
		t.Fatal(err)
	}
	partition := space.Partition("in")
	var mates []string
	for i := 0; len(mates) < 250; i++ {
		if mate := fmt.Sprint("mate", i); space.Partition(sendgate.UserID(mate)) == partition {
			mates = append(mates, mate)
		}
	}
	gone, mates := mates[0], mates[1:]
	old := startGate(t, client, store, nil).follows()
	old.set("in", "promotions", false)
	old.set(gone, "promotions", true)
	streams := feed.NewPublisher(client, space, sendgate.SystemClock)
	for _, mate := range mates { // more than are read at once
		user := sendgate.UserID(mate)
		readAt, err := streams.Clock(t.Context(), user)
		if err == nil {
			err = streams.Announce(t.Context(), []sendgate.Announcement{{Consent: sendgate.Consent{User: user, Revision: 1}, Record: []byte("body"), ReadAt: readAt}})[0]
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	old.set("in", "promotions", true)
	old.must(http.MethodPost, "/v1/preferences/unsubscribe-all", fmt.Sprintf(`{"user_id":%q,"reason":"account_deletion"}`, gone))
	carried(t, store, "in")
	carried(t, store, gone)
	entries, err := client.XRange(t.Context(), space.Stream(partition), "-", "+").Result()
	if err == nil {
		err = client.XDel(t.Context(), space.Stream(partition), entries[len(entries)-20].ID).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	g := startGate(t, client, store, p.filtered).follows()
	redistest.Until(t, "the new gate is ready", g.isReady)
	for user, want := range map[string]string{"in": "allow opted_in", gone: "suppress global_unsubscribe"} {
		for _, topic := range []string{"promotions", "security_alerts"} {
			if topic == "security_alerts" && user == "in" {
				want = "allow essential"
			}
			old.expect("the old gate on "+user+" "+topic, want, func() string { return old.check("n", user, topic) })
			g.expect("the new gate on "+user+" "+topic, want, func() string { return g.check("n", user, topic) })
		}
	}
	if _, exact, known := g.Overlay().Consent("in"); !known || exact {
		t.Errorf("of the first change it is known %t, exactly %t", known, exact)
	}
}

// TestAChangeThatChangesNothing is not kept: a program that writes what is there
// already, for everybody and every day, would fill the overlay.
func TestAChangeThatChangesNothing(t *testing.T) {
	client, store := redistest.Start(t).Client(), openStore(t)
	stored(t, store, "u", push("promotions", false))
	g := startGate(t, client, store, nil).follows()
	g.set("u", "promotions", false)
	if n := g.Overlay().Len(); n != 0 {
		t.Errorf("%d users are kept", n)
	}
	g.set("u", "promotions", true)
	if n := g.Overlay().Len(); n != 1 {
		t.Errorf("%d users are kept of one who has changed", n)
	}
}
