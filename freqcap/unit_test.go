package freqcap

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
)

// However asks of users are mixed, no call is too large or has two units of one
// user, and each user's asks keep their order within and over the calls.
func TestUnitsKeepEachUsersOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		asks := make([]sendgate.CapAsk, rapid.IntRange(1, 500).Draw(r, "asks"))
		list := make([]candidate, len(asks))
		caps := rapid.SampledFrom([]int{1, 2, 3, 8, maxCaps + 1})
		for i := range asks {
			asks[i].User = sendgate.UserID(fmt.Sprint("u", rapid.IntRange(0, 5).Draw(r, "user")))
			list[i] = candidate{ask: &asks[i], place: i, counters: make([]counter, caps.Draw(r, "caps"))}
		}
		sorted, seen := byUser(list), 0
		last := make(map[sendgate.UserID]int)
		for len(sorted) > 0 {
			n := fitting(sorted)
			inCall, sum := make(map[sendgate.UserID]bool), 0
			for _, u := range unitsOf(sorted[:n]) {
				if inCall[u.user] {
					r.Fatalf("%s has two units in one call", u.user)
				}
				inCall[u.user] = true
				for _, c := range u.candidates {
					if c.ask.User != u.user || c.place+1 <= last[u.user] {
						r.Fatalf("ask %d of %s in a unit of %s, after %d", c.place, c.ask.User, u.user, last[u.user]-1)
					}
					last[u.user] = c.place + 1
					seen++
					sum += len(c.counters)
				}
			}
			if sum > maxCaps && n > 1 {
				r.Fatalf("%d caps in one call", sum)
			}
			sorted = sorted[n:]
		}
		if seen != len(asks) {
			r.Fatalf("%d asks became %d", len(asks), seen)
		}
	})
}

// A guard is told of a Redis that does not answer, unless a part of it does.
func TestACallWithoutAnswers(t *testing.T) {
	full, broken := redis.ErrNoScript, context.DeadlineExceeded
	for _, c := range []struct {
		of   []error
		want error
	}{
		{[]error{nil, nil}, nil},
		{[]error{nil, full}, nil},
		{[]error{broken, nil}, nil},
		{[]error{full, broken}, full},
		{[]error{broken, full}, full},
		{[]error{broken, broken}, broken},
	} {
		units := make([]unit, len(c.of))
		for i := range units {
			units[i].err = c.of[i]
		}
		if got := unanswered(units); !errors.Is(got, c.want) {
			t.Errorf("of %v: %v", c.of, got)
		}
	}
}
