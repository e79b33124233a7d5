package node_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/prefs"
)

// TestAGateKnowsWhatIsPendingBeforeItIsReady has an opt-out that was
// acknowledged and has not reached Redis when its gate was killed.
func TestAGateKnowsWhatIsPendingBeforeItIsReady(t *testing.T) {
	client, store := redistest.Start(t).Client(), openStore(t)
	startGate(t, client, store, nil).follows().set("u", "promotions", true)
	record, err := store.Get(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	record.Revision++
	record.Settings[sendgate.Setting{Topic: "promotions", Channel: "push"}] = false
	record.Pending = append(record.Pending, prefs.Change{ID: "cut off", Revision: record.Revision, At: time.Now()})
	if err := store.Put(t.Context(), record, record.Revision-1); err != nil {
		t.Fatal(err)
	}
	g := startGate(t, client, store, nil)
	redistest.Until(t, "the new gate is ready", func() bool {
		status, _ := g.call(http.MethodGet, "/readyz", "")
		return status == http.StatusOK
	})
	g.expect("once it is ready", "suppress opted_out", func() string { return g.check("n", "u", "promotions") })
}

// TestARedisThatIsFull takes no writes and goes on serving the records that it
// holds.
func TestARedisThatIsFull(t *testing.T) {
	client, store := redistest.Start(t).Client(), openStore(t)
	a, b := startGate(t, client, store, nil).follows(), startGate(t, client, store, nil).follows()
	a.set("u", "order_updates", true)
	b.expect("before", "allow opted_in", func() string { return b.check("n", "u", "order_updates") })
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	a.set("u", "order_updates", false)
	a.must(http.MethodPost, "/v1/preferences/unsubscribe-all", `{"user_id":"w","reason":"account_deletion"}`)
	redistest.Until(t, "the other gate obeys", func() bool {
		return b.check("n", "u", "order_updates") == "suppress opted_out" && b.check("n", "w", "security_alerts") == "suppress global_unsubscribe"
	})
}
