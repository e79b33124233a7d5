package feed_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sendgate/sendgate/internal/redistest"
)

// ledger is what announcers were told is announced.
type ledger struct {
	mu    sync.Mutex
	acked map[string]bool // "user revision"
}

func (l *ledger) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for change := range l.acked {
		all = append(all, change)
	}
	return all
}

// announceMuch announces from two sides, until done.
func (l *ledger) announceMuch(d *desk, running *sync.WaitGroup) {
	l.acked = map[string]bool{}
	for a := range 2 {
		running.Go(func() {
			for i := range int64(150) {
				user := fmt.Sprint("u", a, "-", i%3)
				d.announce(user, i+1)
				l.mu.Lock()
				l.acked[fmt.Sprint(user, " ", i+1)] = true
				l.mu.Unlock()
			}
		})
	}
}

func in(applied []change) map[string]bool {
	all := map[string]bool{}
	for _, c := range applied {
		all[fmt.Sprint(c.User, " ", c.Revision)] = true
	}
	return all
}

// While changes are announced, a replay has all that were acknowledged before
// it began, and together with a follower that was live by then, all there are.
func TestAReplayBesideAFollower(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		position := d.position()
		var l ledger
		var announcing sync.WaitGroup
		defer announcing.Wait()
		l.announceMuch(d, &announcing)
		redistest.Until(t, "much is announced", func() bool { return len(l.list()) > 100 })
		g := follow(t, d.client)
		acked := l.list()
		applied, err := d.replay(position)
		if err != nil {
			t.Fatal(err)
		}
		replayed := in(applied)
		for _, change := range acked {
			if !replayed[change] {
				t.Errorf("%s was acknowledged, and not replayed", change)
			}
		}
		d.position() // marks in between disturb nobody
		announcing.Wait()
		redistest.Until(t, "every change has come", func() bool {
			g.mu.Lock()
			heard := in(g.applied)
			g.mu.Unlock()
			return !slices.ContainsFunc(l.list(), func(c string) bool { return !replayed[c] && !heard[c] })
		})
		for a := range 2 {
			for i := range 3 {
				if user := fmt.Sprint("u", a, "-", i); !slices.IsSorted(revisions(applied, user)) {
					t.Errorf("%s was replayed out of order", user)
				}
			}
		}
		t.Logf("%d were replayed, of %d acknowledged before and %d in all", len(applied), len(acked), len(l.list()))
		if n := g.happened("gap"); n != 1 {
			t.Errorf("%d gaps", n)
		}
	})
}
