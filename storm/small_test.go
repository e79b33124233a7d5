package storm_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
)

// The size of the storm that is a test.
const (
	smallGates   = 2
	smallCallers = 64
	smallStorm   = 2000 // opt-outs
	killedAfter  = smallStorm / 4
	downFor      = smallStorm / 4 // acknowledgements
	lookAtOnce   = 100            // of one batch
)

// ledger has every opt-out that was acknowledged, in order.
type ledger struct {
	mu     sync.Mutex
	people []string
	acked  []time.Time
}

func (l *ledger) note(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.people, l.acked = append(l.people, user), append(l.acked, time.Now())
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.people)
}

// page is some of what follows the first n.
func (l *ledger) page(n int) (people []string, acked []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := min(n+lookAtOnce, len(l.people))
	return l.people[n:end], l.acked[n:end]
}

// TestStorm has many people opt out at once, and Redis killed in the middle,
// which comes back empty a while later. Whatever was acknowledged is obeyed at
// every gate in time, and is in the store, the audit log and Redis in the end.
func TestStorm(t *testing.T) {
	f := newFleet(t, smallGates)
	var l ledger
	var healed atomic.Int64 // when Redis was back, in nanoseconds of Unix' time; 0 before
	var all sync.WaitGroup
	defer all.Wait()
	var next atomic.Int64
	for range smallCallers {
		all.Go(func() {
			for i := next.Add(1); i <= smallStorm; i = next.Add(1) {
				user := fmt.Sprintf("storm_%d", i)
				if _, err := f.set(f.gates[rand.IntN(len(f.gates))], user, false); err != nil {
					t.Errorf("an opt-out was not acknowledged: %v", err)
					continue
				}
				l.note(user)
			}
		})
	}
	for i, g := range f.gates {
		all.Go(func() { l.obeyed(t, fmt.Sprintf("gate %d", i), g, &healed) })
	}
	redistest.Until(t, "the storm has begun", func() bool { return l.len() >= killedAfter })
	f.server.Kill()
	redistest.Until(t, "the storm goes on", func() bool { return t.Failed() || l.len() >= killedAfter+downFor })
	f.server.Restart()
	healed.Store(time.Now().UnixNano())
	all.Wait()
	if n := l.len(); n != smallStorm {
		t.Fatalf("%d of %d were acknowledged", n, smallStorm)
	}
	f.keepsAll(t, l.people)
}

// obeyed asks a gate about everybody in the ledger until it says that they have
// opted out, and holds how long that takes against the promise.
func (l *ledger) obeyed(t *testing.T, name string, g *gate, healed *atomic.Int64) {
	var worst time.Duration
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for seen := 0; seen < smallStorm && !t.Failed(); <-tick.C {
		people, acked := l.page(seen)
		if len(people) == 0 {
			continue
		}
		answers, err := g.look(people)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for i, a := range answers {
			from := acked[i]
			if at := healed.Load(); at == 0 {
				from = time.Now() // the fault may be on, and the promise begins at its end
			} else if back := time.Unix(0, at); back.After(from) {
				from = back
			}
			waited := time.Since(from)
			worst = max(worst, waited)
			if waited > promisedInStorm {
				t.Errorf("%s: %s opted out and was acknowledged %s ago, and the answer is %+v", name, people[i], waited, a)
				return
			}
			if !a.optedOut() {
				break // whoever follows is looked at again
			}
			seen++
		}
	}
	t.Logf("%s obeyed everything within %s", name, worst.Round(time.Millisecond))
}

// keepsAll waits until nothing that was acknowledged needs to be carried on: it
// is in the store, once in the audit log, in Redis, and known to every gate.
func (f *fleet) keepsAll(t *testing.T, people []string) {
	t.Helper()
	marketing := sendgate.Setting{Topic: "promotions", Channel: "push"}
	for _, user := range people {
		id := sendgate.UserID(user)
		r, err := f.store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if on, set := r.Settings[marketing]; on || !set {
			t.Fatalf("the opt-out of %s is not in the store", user)
		}
		redistest.Until(t, "the opt-out of "+user+" is logged", func() bool {
			logged, err := f.store.Changes(t.Context(), id, 0, 10)
			return err == nil && len(logged) == 1
		})
		redistest.Until(t, "Redis has the record of "+user, func() bool {
			n, err := f.client.Exists(t.Context(), f.space.Record(id)).Result()
			return err == nil && n == 1
		})
		for _, g := range f.gates {
			redistest.Until(t, "a gate knows the opt-out of "+user, func() bool {
				known, exact, _ := g.Overlay().Consent(id)
				on, set := known.Settings[marketing]
				return exact && set && !on
			})
		}
	}
}
