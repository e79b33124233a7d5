package prefs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/prefs"
)

// reads runs sweeps two seconds apart, and wants so many records to be read.
func reads(t *testing.T, what string, r *rig, sweeps, want int) {
	t.Helper()
	before := r.store.getCount()
	for range sweeps {
		r.pass(2 * time.Second)
		sweep(t, r)
	}
	if n := r.store.getCount() - before; n != want {
		t.Errorf("%s: %d reads in %d sweeps, want %d", what, n, sweeps, want)
	}
}

// TestASweepLeavesAloneWhatItHasLookedAt counts how often records are read that
// have got through, and wait to be cleared.
func TestASweepLeavesAloneWhatItHasLookedAt(t *testing.T) {
	r := newRig(t)
	for _, user := range []sendgate.UserID{"a", "b", "c"} {
		r.put(t, user, "newsletter", "email", off())
	}
	reads(t, "known, and carried on once more", r, 1, 3)
	reads(t, "nothing new", r, 10, 0)
	r.put(t, "a", "newsletter", "email", on())
	reads(t, "one has changed", r, 1, 1)
	reads(t, "nothing new again", r, 1, 0)
	// Something may have been missed: Redis may not hold what it held.
	r.overlay.Gap()
	if _, exact, _ := r.overlay.Consent("b"); exact {
		t.Error("exact in a gap")
	}
	reads(t, "after a gap", r, 1, 6)
	if c, exact, _ := r.overlay.Consent("b"); !exact || c.Revision != 1 {
		t.Errorf("after the sweep: %+v, exact %t", c, exact)
	}
	r.pass(30 * time.Second)
	sweep(t, r)
	for _, user := range []sendgate.UserID{"b", "c"} {
		if n := pending(t, r, user); n != 0 {
			t.Errorf("%s: %d changes are pending", user, n)
		}
	}
}

// TestASweepLeavesAloneWhatWasHeard has a gate hear of changes through the
// change stream: there is nothing to do about them before they are ripe.
func TestASweepLeavesAloneWhatWasHeard(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		user := sendgate.UserID(fmt.Sprint("u", i))
		p := r.put(t, user, "newsletter", "email", off())
		r.overlay.Apply(sendgate.ConsentOf(user, p), sendgate.Place{Offset: sendgate.Offset{Millis: 1}})
	}
	reads(t, "heard", r, 15, 0)
	r.pass(time.Second)
	reads(t, "ripe", r, 1, 20)
	if r.backlog.Records != 20 {
		t.Errorf("before the clearing: %+v", r.backlog)
	}
	sweep(t, r)
	if r.backlog.Records != 0 {
		t.Errorf("after the clearing: %+v", r.backlog)
	}
}

// TestGatesShareTheirWork has four gates sweep the same store: each learns of
// everything, and every record is carried on by about one of them.
func TestGatesShareTheirWork(t *testing.T) {
	a := newRig(t)
	gates := []*rig{a}
	for range 3 {
		gates = append(gates, newRigOn(t, a.client, &faultyStore{Store: a.store.Store}))
	}
	for _, g := range gates {
		sweep(t, g) // all say that they are there
	}
	const users = 200
	a.store.set(func(s *faultyStore) { s.append = func(prefs.Change) error { return errors.New("cut off") } })
	for i := range users {
		a.put(t, sendgate.UserID(fmt.Sprint("u", i)), "newsletter", "email", off())
	}
	a.store.set(nil)
	announced := func() (n int64) {
		for p := range a.space.Partitions() {
			n += a.client.XLen(t.Context(), a.space.Stream(p)).Val()
		}
		return n
	}
	before, swept := announced(), 0
	for _, g := range gates {
		g.pass(2 * time.Second)
		reads := g.store.getCount()
		sweep(t, g)
		if reads = g.store.getCount() - reads; g != a {
			reads -= users // to learn of them
		}
		if swept += reads; reads == users {
			t.Error("a gate has swept everything")
		}
	}
	if n := announced() - before; n != users || swept != users {
		t.Errorf("%d of %d records were carried on, %d announcements", swept, users, n)
	}
	for i := range users {
		user := sendgate.UserID(fmt.Sprint("u", i))
		if logged, err := a.store.Changes(t.Context(), user, 0, 10); err != nil || len(logged) != 1 {
			t.Errorf("%s: %d changes in the log, %v", user, len(logged), err)
		}
		for _, g := range gates {
			if c, exact, _ := g.overlay.Consent(user); !exact || c.Revision != 1 {
				t.Errorf("a gate does not know of %s", user)
			}
		}
	}
}

// TestWhatIsDroppedIsLearnedAgain has a gate learn of a change that does not get
// through, and then of so many others that its overlay drops it.
func TestWhatIsDroppedIsLearnedAgain(t *testing.T) {
	a := newRig(t)
	b := newRigOn(t, a.client, &faultyStore{Store: a.store.Store})
	for _, r := range []*rig{a, b} {
		r.store.set(func(s *faultyStore) { s.append = func(prefs.Change) error { return errors.New("cut off") } })
	}
	a.put(t, "u", "newsletter", "email", off())
	for range 2 {
		b.pass(2 * time.Second)
		_ = b.sweeper.Sweep(t.Context()) // carries nothing on
		if c, exact, _ := b.overlay.Consent("u"); !exact || c.Revision != 1 {
			t.Fatalf("after a sweep: %+v, exact %t", c, exact)
		}
		for i := range 5000 {
			b.overlay.ApplySince(sendgate.Consent{User: sendgate.UserID(fmt.Sprint("other", i)), Revision: 1}, b.overlay.Epoch())
		}
		if _, _, known := b.overlay.Consent("u"); known {
			t.Fatal("the overlay has dropped nothing")
		}
	}
}

// TestOneRecordKeepsNoneFromBeingCarriedOn has a record that cannot be read.
func TestOneRecordKeepsNoneFromBeingCarriedOn(t *testing.T) {
	r := newRig(t)
	for _, user := range []sendgate.UserID{"damaged", "sound"} {
		r.put(t, user, "newsletter", "email", off())
	}
	r.store.set(func(s *faultyStore) {
		s.beforeGet = func(_ context.Context, user sendgate.UserID) error {
			if user == "damaged" {
				return errors.New("it does not decode")
			}
			return nil
		}
	})
	for range 3 {
		r.pass(30 * time.Second)
		if err := r.sweeper.Sweep(t.Context()); err == nil {
			t.Error("a record that cannot be read is no error")
		}
	}
	r.store.set(nil)
	if pending(t, r, "sound") != 0 || pending(t, r, "damaged") != 1 {
		t.Errorf("pending: %d of the sound one, %d of the damaged one", pending(t, r, "sound"), pending(t, r, "damaged"))
	}
}

// TestAPartOfRedisThatHangs has one master of three not answer: what belongs to
// the others is carried on, though it comes in the same lots.
func TestAPartOfRedisThatHangs(t *testing.T) {
	cluster := redistest.StartCluster(t)
	base := newRig(t)
	r := newRigOn(t, cluster.Client(), base.store)
	r.store.set(func(s *faultyStore) { s.append = func(prefs.Change) error { return errors.New("cut off") } })
	var onOthers []sendgate.UserID
	for i := range 60 {
		user := sendgate.UserID(fmt.Sprint("u", i))
		r.put(t, user, "newsletter", "email", off())
		if r.slot(t, user) > 16384/3 { // the first third is the first master's
			onOthers = append(onOthers, user)
		}
	}
	r.store.set(nil)
	hangs := cluster.Masters()[0].Client()
	if err := hangs.Do(t.Context(), "CLIENT", "PAUSE", time.Minute.Milliseconds(), "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	r.pass(2 * time.Second)
	if err := r.sweeper.Sweep(t.Context()); err == nil {
		t.Error("a master that hangs keeps nothing from being carried on")
	}
	for _, user := range onOthers {
		if logged, err := r.store.Changes(t.Context(), user, 0, 10); err != nil || len(logged) != 1 {
			t.Errorf("%s: %d changes in the log, %v", user, len(logged), err)
		}
	}
}
