package freqcap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
)

// However asks of subjects are mixed, no call is too large or has two units of
// one subject, and each subject's asks keep their order within and over the
// calls.
func TestUnitsKeepEachSubjectsOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		items := make([]*item, rapid.IntRange(1, 500).Draw(r, "asks"))
		caps := rapid.SampledFrom([]int{1, 2, 3, 8, maxCaps + 1})
		for i := range items {
			items[i] = &item{
				candidate: &candidate{place: i},
				part:      &part{key: fmt.Sprint("u", rapid.IntRange(0, 5).Draw(r, "user")), counters: make([]counter, caps.Draw(r, "caps"))},
			}
		}
		sorted, seen := byKey(items), 0
		last := make(map[string]int)
		for len(sorted) > 0 {
			n := fitting(sorted)
			inCall, sum := make(map[string]bool), 0
			for _, u := range unitsOf(sorted[:n]) {
				if inCall[u.key] {
					r.Fatalf("%s has two units in one call", u.key)
				}
				inCall[u.key] = true
				for _, it := range u.items {
					if it.key != u.key || it.place+1 <= last[u.key] {
						r.Fatalf("ask %d of %s in a unit of %s, after %d", it.place, it.key, u.key, last[u.key]-1)
					}
					last[u.key] = it.place + 1
					seen++
					sum += len(it.counters)
				}
			}
			if (sum > maxCaps || n > maxItems) && n > 1 {
				r.Fatalf("%d asks with %d caps in one call", n, sum)
			}
			sorted = sorted[n:]
		}
		if seen != len(items) {
			r.Fatalf("%d asks became %d", len(items), seen)
		}
	})
}

// Of two asks that share a subject, the later one is in a later wave if either is
// charged for several subjects, and in no earlier one otherwise.
func TestWavesKeepEachSubjectsOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := make([]candidate, rapid.IntRange(1, 30).Draw(r, "asks"))
		for i := range list {
			list[i].place = i
			list[i].ask = &sendgate.CapAsk{Look: rapid.Bool().Draw(r, "looks")}
			keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID).Draw(r, "subjects")
			for _, key := range keys {
				list[i].parts = append(list[i].parts, part{key: key})
			}
		}
		waves(list)
		for i := range list {
			for j := range list[:i] {
				a, b := &list[j], &list[i]
				if a.place > b.place {
					a, b = b, a
				}
				shares := slices.ContainsFunc(a.parts, func(p part) bool {
					return slices.ContainsFunc(b.parts, func(q part) bool { return p.key == q.key })
				})
				least := a.wave
				if a.spansSubjects() && !a.ask.Look || b.spansSubjects() && !b.ask.Look {
					least++
				}
				if shares && b.wave < least {
					r.Fatalf("ask %d is in wave %d, and ask %d in %d", a.place, a.wave, b.place, b.wave)
				}
			}
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
		runs := make([]*run, len(c.of))
		for i := range runs {
			runs[i] = &run{err: c.of[i]}
		}
		if got := unanswered(runs); !errors.Is(got, c.want) {
			t.Errorf("of %v: %v", c.of, got)
		}
	}
}
