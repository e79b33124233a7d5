package prefs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
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

// TestSweepCarriesOn cuts a change off at each step of its way.
func TestSweepCarriesOn(t *testing.T) {
	for name, cut := range map[string]func(r *rig, server *redistest.Server) (heal func()){
		"before it was announced": func(_ *rig, server *redistest.Server) func() {
			server.Kill()
			return server.Restart
		},
		"before it was logged": func(r *rig, _ *redistest.Server) func() {
			r.store.set(func(s *faultyStore) { s.append = func(prefs.Change) error { return errors.New("cut off") } })
			return func() { r.store.set(nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			base, server := newRig(t), redistest.Start(t) // where no other gate sweeps
			r := newRigOn(t, server.Client(), base.store)
			heal := cut(r, server)
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

// TestSweepTellsItsGate has a gate learn of a change that Redis cannot tell it.
func TestSweepTellsItsGate(t *testing.T) {
	a := newRig(t)
	b := newRigOn(t, a.client, &faultyStore{Store: a.store.Store})
	a.put(t, "u", "newsletter", "email", off())
	if _, _, known := b.overlay.Consent("u"); known {
		t.Fatal("the other gate knows already")
	}
	sweep(t, b)
	if c, exact, known := b.overlay.Consent("u"); !known || !exact || c.Revision != 1 {
		t.Errorf("after a sweep: %+v, exact %t, known %t", c, exact, known)
	}
}

// TestSweepWithClocksApart has a change made by a gate whose clock is ahead,
// or behind, swept by another.
func TestSweepWithClocksApart(t *testing.T) {
	for _, apart := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		a := newRig(t)
		b := newRigOn(t, a.client, &faultyStore{Store: a.store.Store})
		b.pass(apart)
		a.store.set(func(s *faultyStore) { s.append = func(prefs.Change) error { return errors.New("cut off") } })
		a.put(t, "u", "newsletter", "email", off())
		sweep(t, b)
		if logged, err := b.store.Changes(t.Context(), "u", 0, 10); err != nil || len(logged) != 1 {
			t.Errorf("%v apart: %d changes in the log, %v", apart, len(logged), err)
		}
		b.pass(29 * time.Second)
		sweep(t, b)
		if n := pending(t, b, "u"); n != 1 {
			t.Errorf("%v apart: %d changes pending after 29 s", apart, n)
		}
		b.pass(time.Second)
		sweep(t, b)
		if n := pending(t, b, "u"); n != 0 {
			t.Errorf("%v apart: %d changes pending after 30 s", apart, n)
		}
	}
}

// TestPendingBlocksNobodysWayOut fills a record with pending changes.
func TestPendingBlocksNobodysWayOut(t *testing.T) {
	r := newRig(t)
	full := &prefs.Record{User: "u"}
	long := strings.Repeat("x", prefs.MaxMetaBytes)
	for size := 0; size < prefs.MaxRecordBytes-1000; {
		full.Revision++
		full.Pending = append(full.Pending, prefs.Change{
			ID: fmt.Sprint(full.Revision), Revision: full.Revision, At: r.clock(), Meta: prefs.Meta{Actor: long, Reason: long},
			What: []prefs.Diff{{Kind: prefs.DiffPreference, Topic: "newsletter", Channel: "email"}},
		})
		if size += 500; full.Revision%20 == 0 {
			data, err := prefs.EncodeRecord(full)
			if err != nil {
				t.Fatal(err)
			}
			size = len(data)
		}
	}
	if err := r.store.Put(t.Context(), full, 0); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		e, err := r.service.UnsubscribeAll(t.Context(), prefs.Unsubscribe{User: "u", Reason: prefs.ReasonAccountDeletion}, prefs.Meta{Reason: long})
		if err != nil || !e.Preferences.Hard() {
			t.Fatalf("%+v, %v", e, err)
		}
		if _, err := r.service.Resubscribe(t.Context(), prefs.Resubscribe{User: "u", Reason: "r"}, prefs.Meta{Reason: long}); err != nil {
			t.Fatal(err)
		}
	}
	if record, err := r.store.Get(t.Context(), "u"); err != nil || record.Pending[0].What != nil {
		t.Errorf("the record was not made to fit: %+v, %v", record.Pending[0], err)
	}
	cs := r.changes(t, "u")
	if cs[0].Revision != 1 || cs[0].Reason != long || len(cs[0].What) != 1 {
		t.Errorf("the first change is shown as %+v", cs[0])
	}
}

// TestSweepThatCannotListEverything goes on with what it was told of.
func TestSweepThatCannotListEverything(t *testing.T) {
	r := newRig(t)
	r.store.set(func(s *faultyStore) { s.append = func(prefs.Change) error { return errors.New("cut off") } })
	for i := range 50 {
		r.put(t, sendgate.UserID(fmt.Sprint("u", i)), "newsletter", "email", off())
	}
	r.pass(2 * time.Second)
	unlisted := errors.New("throttled")
	r.store.set(func(s *faultyStore) {
		s.append = func(prefs.Change) error { return errors.New("cut off") }
		s.afterPending = func(error) error { return unlisted }
	})
	if err := r.sweeper.Sweep(t.Context()); !errors.Is(err, unlisted) {
		t.Errorf("%v", err)
	}
	r.store.set(nil)
	sweep(t, r)
	for i := range 50 {
		if logged, err := r.store.Changes(t.Context(), sendgate.UserID(fmt.Sprint("u", i)), 0, 10); err != nil || len(logged) != 1 {
			t.Errorf("user %d: %d changes in the log, %v", i, len(logged), err)
		}
	}
}

// TestASweepThatCouldNotReadIsNotTheFirst has the first sweep of a gate fail to
// read a pending record: the gate is not told that it knows them all.
func TestASweepThatCouldNotReadIsNotTheFirst(t *testing.T) {
	a := newRig(t)
	a.put(t, "u", "newsletter", "email", off())
	r := newRigOn(t, a.client, &faultyStore{Store: a.store.Store})
	unreadable := errors.New("throttled")
	r.store.set(func(s *faultyStore) {
		s.beforeGet = func(context.Context, sendgate.UserID) error { return unreadable }
	})
	before := r.store.getCount()
	ctx, cancel := context.WithCancel(t.Context())
	first, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); r.sweeper.Run(ctx, func() { close(first) }) }()
	redistest.Until(t, "the second sweep is under way", func() bool { return r.store.getCount() >= before+2 })
	select {
	case <-first:
		t.Error("a gate that could not read is told that it knows everything")
	default:
	}
	r.store.set(nil)
	<-first // the next one does
	cancel()
	<-ended
}
