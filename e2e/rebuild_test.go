package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// slowScan makes the scan of the whole population take some twenty seconds.
var slowScan = fmt.Sprintf("SENDGATE_STORE_DYNAMODB_SCAN_UNITS=%d", 250/part)

// changeEvery is the pause between changes during a scan. What is changed keeps
// the gates' sweeps busy for half a minute, and dynalite is slow.
const changeEvery = 40 * time.Millisecond

// leastChanges is how many changes have to fall into a scan for it to show
// anything.
const leastChanges = 20

// testRebuild builds and swaps a filter in while checks go on and people
// change their minds.
func testRebuild(t *testing.T, f *fleet, w *world, checks []oracle.Check) rebuilt {
	before := f.gates[0].metric("sendgate_filter_generation")
	s := w.stream(f.gates, false)
	s.askers = 1 // all the time, but not for all that the machine can do
	stop := s.repeat(checks)
	defer stop()
	builder := f.build(slowScan)
	began := time.Now()
	changed := w.changeMinds(t, f, builder.Ended())
	builder.Wait()
	took := time.Since(began)
	generation := f.awaitGeneration(before)
	swapped := time.Since(began) - took
	stop()
	s.end(t, "while the filter was rebuilt and swapped in")
	s = w.stream(f.gates, false)
	s.send(checks)
	s.end(t, "after the swap")
	t.Logf("the rebuild took %s, with %d changes in it; gates had it %s later", took.Round(time.Millisecond), len(changed), swapped.Round(time.Millisecond))
	if len(changed) < leastChanges {
		t.Errorf("%d changes fell into the rebuild, and at least %d should", len(changed), leastChanges)
	}

	for i, g := range f.gates {
		s := w.stream([]*gate{g}, false)
		s.send(about(changed, fmt.Sprintf("g%d", i)))
		s.end(t, fmt.Sprintf("changes made during the scan, at gate %d", i))
	}
	return rebuilt{generation: generation, at: time.Now(), changed: changed}
}

// rebuilt is a filter, and who changed their minds while it was built.
type rebuilt struct {
	generation float64
	at         time.Time // when every gate had it
	changed    []*person
}

// testNewGate asks a gate that is started when the changes that fell into the
// rebuild are no longer pending. Gates that were there then have them in their
// overlays, whatever is in the filter; this one knows what is in the filter,
// and what it replays from before the scan.
func testNewGate(t *testing.T, f *fleet, w *world, r rebuilt) {
	until(t, "the changes made during the scan are not pending any more", func() bool {
		oldest := time.Duration(f.gates[0].metric("sendgate_pending_oldest_seconds") * float64(time.Second))
		return time.Now().Add(-oldest).After(r.at)
	})
	fresh := f.startGate()
	if got := fresh.metric("sendgate_filter_generation"); got != r.generation {
		t.Errorf("a new gate has the filter of generation %.0f, want %.0f", got, r.generation)
	}
	s := w.stream([]*gate{fresh}, false)
	s.send(about(r.changed, "fresh"))
	s.end(t, "changes made during the scan, at a gate that was started afterwards")
	fresh.Stop()
	f.gates = f.gates[:len(f.gates)-1]
}

// changeMinds has people change their minds, one after the other, until ended
// is closed: out, out and in again, held, held and released. Everybody has
// chosen for good before the next one does.
func (w *world) changeMinds(t *testing.T, f *fleet, ended <-chan struct{}) (changed []*person) {
	t.Helper()
	pause := time.NewTicker(changeEvery)
	defer pause.Stop()
	for n := 0; ; n++ {
		select {
		case <-ended:
			return changed
		case <-pause.C:
		}
		course, g := courses[n%len(courses)], f.gates[n%len(f.gates)]
		p := w.take(t, course[0].who, 1)[0]
		for _, c := range course {
			if err := c.do(g, p.id); err != nil {
				t.Fatal(err)
			}
			w.change(p.id, c)
		}
		changed = append(changed, p)
	}
}

var release = change{
	do: func(g *gate, user string) error {
		return g.insist("POST", "/v1/preferences/resubscribe", map[string]any{"user_id": user, "reason": "back"})
	},
	tell: func(o *oracle.Oracle, user string, now time.Time) {
		o.Resubscribe(oracle.Unsubscribe{User: user, Reason: "back"}, now)
	},
}

var courses = [][]change{{optOut}, {optIn}, {hardHold}, {optOut, optIn}, {optIn, optOut}, {hardHold, release}}

// about are checks that show everything that people may have changed.
func about(people []*person, name string) (checks []oracle.Check) {
	for i, p := range people {
		for j, what := range []oracle.Check{optOut.check, hardHold.check, {Topic: "order_updates", Channel: "push"}, {Topic: "newsletter", Channel: "push"}} {
			what.User, what.NotificationID = p.id, fmt.Sprintf("%s_%d_%d", name, i, j)
			checks = append(checks, what)
		}
	}
	return checks
}
