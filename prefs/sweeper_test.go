package prefs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
)

// pending is how many changes of a user are pending in the store.
func pending(t *testing.T, r *rig, user sendgate.UserID) int {
	t.Helper()
	record, err := r.store.Get(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	return len(record.Pending)
}

func sweep(t *testing.T, r *rig) {
	t.Helper()
	if err := r.sweeper.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSweepClearsWhatGotThrough(t *testing.T) {
	r := newRig(t)
	r.put(t, "u", "newsletter", "email", off())
	r.pass(29 * time.Second)
	sweep(t, r)
	if n := pending(t, r, "u"); n != 1 || r.oldest != 29*time.Second {
		t.Errorf("%d changes pending after 29 s, the oldest for %v", n, r.oldest)
	}
	r.pass(time.Second)
	sweep(t, r)
	if n := pending(t, r, "u"); n != 0 {
		t.Errorf("%d changes pending after 30 s", n)
	}
	sweep(t, r)
	if p, err := r.service.Get(t.Context(), "u"); err != nil || p.Revision != 1 || r.oldest != 0 {
		t.Errorf("clearing led to %+v (%v), the oldest pending for %v", p, err, r.oldest)
	}
	if n := len(r.changes(t, "u")); n != 1 {
		t.Errorf("%d changes in the log", n)
	}
	if n := r.streamLength(t, "u"); n != 1 {
		t.Errorf("%d announcements of what had got through", n)
	}
}

func TestSweepKeepsWhatRedisDoesNotHold(t *testing.T) {
	r := newRig(t)
	r.put(t, "u", "newsletter", "email", off())
	// A failover has lost the record's last revision.
	empty, err := prefs.EncodePreferences(&sendgate.Preferences{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.client.Set(t.Context(), r.space.Record("u"), keyspace.RecordValue(0, empty), time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	r.pass(time.Minute)
	sweep(t, r)
	if n := pending(t, r, "u"); n != 1 {
		t.Errorf("%d changes pending though Redis held an older revision", n)
	}
	if p := r.read(t, "u", 0); p.Revision != 1 {
		t.Errorf("Redis holds revision %d after the sweep", p.Revision)
	}
	sweep(t, r)
	if n := pending(t, r, "u"); n != 0 {
		t.Errorf("%d changes pending", n)
	}
}

// TestSweepCarriesOn cuts a change off at each step of its way.
func TestSweepCarriesOn(t *testing.T) {
	server := redistest.Start(t)
	for name, cut := range map[string]func(r *rig) (heal func()){
		"before it was announced": func(*rig) func() {
			server.Kill()
			return server.Restart
		},
		"before it was logged": func(r *rig) func() {
			r.store.set(func(s *faultyStore) { s.append = func(prefs.Change) error { return errors.New("cut off") } })
			return func() { r.store.set(nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := newRig(t)
			r := newRigOn(t, server.Client(), base.store)
			heal := cut(r)
			if p := r.put(t, "u", "newsletter", "email", off()); p.Revision != 1 {
				t.Fatalf("revision %d", p.Revision)
			}
			if c, exact, known := r.overlay.Consent("u"); !known || !exact || c.Revision != 1 {
				t.Error("what was acknowledged is not obeyed here")
			}
			// It shows in the log before it is in it.
			if n := len(r.changes(t, "u")); n != 1 {
				t.Errorf("%d changes", n)
			}
			heal()
			redistest.Until(t, "Redis answers", func() bool { return r.client.Ping(t.Context()).Err() == nil })
			r.pass(2 * time.Second)
			sweep(t, r)
			if n := r.streamLength(t, "u"); n == 0 {
				t.Error("nothing was announced")
			}
			logged, err := r.store.Changes(t.Context(), "u", 0, 10)
			if err != nil || len(logged) != 1 {
				t.Errorf("%d changes in the log, %v", len(logged), err)
			}
		})
	}
}

func TestNoChangeRedoesPendingWork(t *testing.T) {
	r := newRig(t)
	r.store.set(func(s *faultyStore) { s.append = func(prefs.Change) error { return errors.New("cut off") } })
	r.put(t, "u", "newsletter", "email", off())
	r.store.set(nil)
	if p := r.put(t, "u", "newsletter", "email", off()); p.Revision != 1 {
		t.Errorf("revision %d", p.Revision)
	}
	if logged, err := r.store.Changes(t.Context(), "u", 0, 10); err != nil || len(logged) != 1 {
		t.Errorf("%d changes in the log, %v", len(logged), err)
	}
}
