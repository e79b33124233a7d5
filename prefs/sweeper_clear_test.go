package prefs_test

import (
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
)

func TestSweepClearsWhatGotThrough(t *testing.T) {
	r := newRig(t)
	r.put(t, "u", "newsletter", "email", off())
	r.pass(10 * time.Second)
	sweep(t, r) // sees to it that it has got through
	r.pass(29 * time.Second)
	sweep(t, r)
	if n := pending(t, r, "u"); n != 1 || r.backlog != (prefs.Backlog{Records: 1, Oldest: 39 * time.Second}) {
		t.Errorf("%d changes pending after 29 s, in all %+v", n, r.backlog)
	}
	r.pass(time.Second)
	sweep(t, r)
	if n := pending(t, r, "u"); n != 0 {
		t.Errorf("%d changes pending after 30 s", n)
	}
	sweep(t, r)
	if p, err := r.service.Get(t.Context(), "u"); err != nil || p.Revision != 1 || r.backlog != (prefs.Backlog{}) {
		t.Errorf("clearing led to %+v (%v), pending are %+v", p, err, r.backlog)
	}
	if n := len(r.changes(t, "u")); n != 1 {
		t.Errorf("%d changes in the log", n)
	}
	// Once when it was made, once since this gate has not heard that, and once
	// more before it was cleared.
	if n := r.streamLength(t, "u"); n != 3 {
		t.Errorf("%d announcements", n)
	}
}

// TestSweepTimesWhatGotThrough has Redis be away for longer than changes stay
// pending: the time that counts begins when a change has got through.
func TestSweepTimesWhatGotThrough(t *testing.T) {
	server := redistest.Start(t)
	base := newRig(t)
	r := newRigOn(t, server.Client(), base.store)
	server.Kill()
	r.put(t, "u", "newsletter", "email", off())
	for range 3 {
		r.pass(20 * time.Second)
		if err := r.sweeper.Sweep(t.Context()); err == nil {
			t.Fatal("a Redis that is away keeps nothing from being carried on")
		}
	}
	server.Restart()
	redistest.Until(t, "it is carried on", func() bool { return r.sweeper.Sweep(t.Context()) == nil })
	r.pass(29 * time.Second)
	sweep(t, r)
	if n := pending(t, r, "u"); n != 1 {
		t.Errorf("%d changes pending 29 s after they got through", n)
	}
	r.pass(time.Second)
	sweep(t, r)
	if n := pending(t, r, "u"); n != 0 {
		t.Errorf("%d changes pending 30 s after they got through", n)
	}
}

// TestSweepStartsAnewAfterAGap has a gap in what the gate was told, shortly
// before a change would be cleared: Redis may have lost it.
func TestSweepStartsAnewAfterAGap(t *testing.T) {
	r := newRig(t)
	r.put(t, "u", "newsletter", "email", off())
	r.pass(2 * time.Second)
	sweep(t, r)
	r.pass(29 * time.Second)
	r.overlay.Gap()
	for _, passes := range []time.Duration{0, time.Second, 28 * time.Second} {
		r.pass(passes)
		sweep(t, r)
		if n := pending(t, r, "u"); n != 1 {
			t.Errorf("%d changes pending less than 30 s after a gap", n)
		}
	}
	r.pass(time.Second)
	sweep(t, r)
	if n := pending(t, r, "u"); n != 0 {
		t.Errorf("%d changes pending 30 s after a gap", n)
	}
}

// TestWhatWasHeardBeforeAGap has a gate hear of a change, and Redis come back
// empty and not take writes at first: the change is carried on, however the gate
// has learned of it again meanwhile.
func TestWhatWasHeardBeforeAGap(t *testing.T) {
	server := redistest.Start(t)
	base := newRig(t)
	r := newRigOn(t, server.Client(), base.store)
	p := r.put(t, "u", "newsletter", "email", off())
	r.overlay.Apply(sendgate.ConsentOf("u", p), sendgate.Place{Offset: sendgate.Offset{Millis: 1}})
	r.pass(2 * time.Second)
	sweep(t, r)
	r.overlay.Gap()
	server.Kill()
	r.pass(2 * time.Second)
	if err := r.sweeper.Sweep(t.Context()); err == nil {
		t.Fatal("a Redis that is away keeps nothing from being carried on")
	}
	if _, exact, _ := r.overlay.Consent("u"); !exact {
		t.Error("what is pending was not learned again")
	}
	server.Restart()
	r.pass(2 * time.Second)
	redistest.Until(t, "it is carried on", func() bool { return r.sweeper.Sweep(t.Context()) == nil })
	if n := r.streamLength(t, "u"); n != 1 {
		t.Errorf("%d announcements since Redis came back empty", n)
	}
}

// TestABusyUserIsClearedToo has somebody who changes every few seconds: what is
// old enough is cleared, and what is not stays.
func TestABusyUserIsClearedToo(t *testing.T) {
	r := newRig(t)
	for i := range 30 {
		setting := off()
		if i%2 == 1 {
			setting = on()
		}
		r.put(t, "u", "newsletter", "email", setting)
		r.pass(2 * time.Second)
		sweep(t, r)
		if n := pending(t, r, "u"); n > 32 {
			t.Fatalf("%d changes are pending", n)
		}
	}
	r.pass(30 * time.Second)
	sweep(t, r)
	r.pass(30 * time.Second)
	sweep(t, r)
	if n := pending(t, r, "u"); n != 0 {
		t.Errorf("%d changes are pending in the end", n)
	}
	if n := len(r.changes(t, "u")); n != 30 {
		t.Errorf("%d changes in the log", n)
	}
}

// TestSweepKeepsWhatRedisDoesNotHold has Redis lose a record just before its
// changes would be cleared, and the gate not notice.
func TestSweepKeepsWhatRedisDoesNotHold(t *testing.T) {
	older, err := prefs.EncodePreferences(&sendgate.Preferences{})
	if err != nil {
		t.Fatal(err)
	}
	for what, lose := range map[string]func(r *rig, key string) error{
		"an older one": func(r *rig, key string) error {
			return r.client.Set(t.Context(), key, keyspace.RecordValue(0, older), time.Minute).Err()
		},
		"nothing": func(r *rig, key string) error { return r.client.Del(t.Context(), key).Err() },
	} {
		r := newRig(t)
		r.put(t, "u", "newsletter", "email", off())
		r.pass(2 * time.Second)
		sweep(t, r)
		r.pass(30 * time.Second)
		if err := lose(r, r.space.Record("u")); err != nil {
			t.Fatal(err)
		}
		sweep(t, r)
		if n := pending(t, r, "u"); n != 1 {
			t.Errorf("%d changes pending though Redis held %s", n, what)
		}
		if p := r.read(t, "u", 0); p.Revision != 1 {
			t.Errorf("Redis held %s, and revision %d after the sweep", what, p.Revision)
		}
		r.pass(30 * time.Second)
		sweep(t, r)
		if n := pending(t, r, "u"); n != 0 {
			t.Errorf("%d changes pending in the end", n)
		}
	}
}
