package prefs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
)

// TestASweepLeavesAloneWhatItHasLookedAt counts how often records are read that
// have got through, and wait to be cleared.
func TestASweepLeavesAloneWhatItHasLookedAt(t *testing.T) {
	r := newRig(t)
	for _, user := range []sendgate.UserID{"a", "b", "c"} {
		r.put(t, user, "newsletter", "email", off())
	}
	reads := func(what string, sweeps, want int) {
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
	reads("told, and looked at", 1, 6)
	reads("nothing new", 10, 0)
	r.put(t, "a", "newsletter", "email", on())
	reads("one has changed", 1, 2)
	reads("nothing new again", 1, 0)
	// Something may have been missed: Redis may not hold what it held.
	r.overlay.Gap()
	if _, exact, _ := r.overlay.Consent("b"); exact {
		t.Error("exact in a gap")
	}
	reads("after a gap", 1, 6)
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
		r.pass(20 * time.Second)
		if err := r.sweeper.Sweep(t.Context()); err == nil {
			t.Error("a record that cannot be read is no error")
		}
	}
	r.store.set(nil)
	if pending(t, r, "sound") != 0 || pending(t, r, "damaged") != 1 {
		t.Errorf("pending: %d of the sound one, %d of the damaged one", pending(t, r, "sound"), pending(t, r, "damaged"))
	}
}
