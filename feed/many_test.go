package feed_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
)

// TestManyStatesAtOnce announces many users' states together, before Redis
// knows the script and when it has forgotten it; some of them cannot be.
func TestManyStatesAtOnce(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		d.announce("newer", 9)
		for round := range int64(3) {
			if err := d.client.ScriptFlush(t.Context()).Err(); err != nil && round == 0 {
				t.Fatal(err)
			}
			now, err := d.Clock(t.Context(), "u")
			if err != nil {
				t.Fatal(err)
			}
			var states []sendgate.Announcement
			for i := range 150 {
				states = append(states, sendgate.Announcement{Consent: consentOf(fmt.Sprint("u", i), round+1), Record: []byte("body"), ReadAt: now})
			}
			states[10].Consent.User = "a\xff"
			states[20].ReadAt = now.Add(-time.Hour)
			states[30].Consent = consentOf("newer", 1)
			for i, err := range d.Announce(t.Context(), states) {
				switch {
				case i == 10 && err == nil, i == 20 && !errors.Is(err, feed.ErrStale), i != 10 && i != 20 && err != nil:
					t.Errorf("round %d, state %d: %v", round, i, err)
				}
			}
			entries := int64(0)
			for p := range d.space.Partitions() {
				entries += d.client.XLen(t.Context(), d.space.Stream(p)).Val()
			}
			if want := 1 + 147*(round+1); entries != want {
				t.Errorf("round %d: %d entries, want %d", round, entries, want)
			}
			for user, want := range map[string]int64{"u0": round + 1, "u9": round + 1, "u11": round + 1, "u149": round + 1, "newer": 9} {
				got, err := d.client.Get(t.Context(), d.space.Record(sendgate.UserID(user))).Result()
				if err != nil || got != fmt.Sprintf("R%d body", want) {
					t.Errorf("round %d: %s has %q, %v", round, user, got, err)
				}
			}
		}
	})
}

func TestNothingToAnnounce(t *testing.T) {
	d := newDesk(t, redistest.Embedded(t))
	if errs := d.Announce(t.Context(), nil); len(errs) != 0 {
		t.Errorf("%v", errs)
	}
}

// TestTheClockIsReadNowAndThen counts how often Redis is asked for its clock.
func TestTheClockIsReadNowAndThen(t *testing.T) {
	server := redistest.Start(t)
	client, space := server.Client(), newSpace(t)
	here := time.Unix(1_000_000, 0) // this machine may be anywhere
	p := feed.NewPublisher(client, space, func() time.Time { return here })
	read := func() time.Time {
		t.Helper()
		at, err := p.Clock(t.Context(), "u")
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := read()
	here = here.Add(999 * time.Millisecond)
	if again := read(); !again.Equal(first) {
		t.Errorf("asked again after less than a second: %v, and %v", first, again)
	}
	here = here.Add(time.Millisecond)
	second := read()
	if !second.After(first) {
		t.Errorf("not asked again after a second: %v, and %v", first, second)
	}
	here = here.Add(-time.Hour) // somebody has set the clock
	if third := read(); !third.After(second) {
		t.Errorf("not asked again when the clock has gone back: %v, and %v", second, third)
	}
	server.Kill()
	here = here.Add(time.Minute)
	if at, err := p.Clock(t.Context(), "u"); err == nil {
		t.Errorf("a Redis that is down says %v", at)
	}
}

// TestAnotherRedisClock has what Redis' clock said be refused: it is asked
// again, since another Redis may have taken the place of the one that said it.
func TestAnotherRedisClock(t *testing.T) {
	d := newDesk(t, redistest.Start(t).Client())
	now, err := d.Clock(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.tell(consentOf("u", 1), now.Add(-11*time.Second)); !errors.Is(err, feed.ErrStale) {
		t.Fatal(err)
	}
	if again, err := d.Clock(t.Context(), "u"); err != nil || !again.After(now) {
		t.Errorf("%v, and then %v, %v", now, again, err)
	}
}
