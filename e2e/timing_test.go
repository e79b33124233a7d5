package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// optOutWithin is the promise for an opt-out: in force at every gate, counted
// from when it was acknowledged. That for a hold is holdWithin.
const optOutWithin = 5 * time.Second

// samples is how many changes of each kind are timed.
const samples = 200 / part

// change is what somebody does at one gate, and a check at another that shows
// whether it is in force there.
type change struct {
	do    func(g *gate, user string) error
	tell  func(o *oracle.Oracle, user string, now time.Time)
	check oracle.Check // but for the user
	want  string       // its verdict then
	who   int          // can make it: in or out
}

var optOut = change{
	do: func(g *gate, user string) error { return g.set(user, "promotions", "email", false) },
	tell: func(o *oracle.Oracle, user string, now time.Time) {
		o.Edit(user, oracle.Edit{Preferences: []oracle.PreferenceEdit{{Topic: "promotions", Channel: "email", Enabled: oracle.Some(false)}}}, now)
	},
	check: oracle.Check{NotificationID: "t", Topic: "promotions", Channel: "email"}, want: "suppress", who: in,
}

// optIn is the way back, of somebody whom the filter has.
var optIn = change{
	do: func(g *gate, user string) error { return g.set(user, "promotions", "email", true) },
	tell: func(o *oracle.Oracle, user string, now time.Time) {
		o.Edit(user, oracle.Edit{Preferences: []oracle.PreferenceEdit{{Topic: "promotions", Channel: "email", Enabled: oracle.Some(true)}}}, now)
	},
	check: oracle.Check{NotificationID: "t", Topic: "promotions", Channel: "email"}, want: "allow", who: out,
}

// hardHold stops essential notifications too, and of those a gate that has not
// heard of it reads no record.
var hardHold = change{
	do: func(g *gate, user string) error {
		return g.insist("POST", "/v1/preferences/unsubscribe-all", map[string]any{"user_id": user, "reason": "account_deletion"})
	},
	tell: func(o *oracle.Oracle, user string, now time.Time) {
		o.Unsubscribe(oracle.Unsubscribe{User: user, Reason: "account_deletion"}, now)
	},
	check: oracle.Check{NotificationID: "t", Topic: "security_alerts", Channel: "push"}, want: "suppress", who: in,
}

// testPropagation times changes from their acknowledgement at one gate until
// another obeys, and until it needs to ask nobody for that.
func testPropagation(t *testing.T, f *fleet, w *world) {
	inForce, inProcess := timed(t, f, w, optOut)
	t.Logf("an opt-out is in force at the other gate: %s; known there in process: %s", inForce, inProcess)
	if worst := inForce.worst(); worst > optOutWithin {
		t.Errorf("an opt-out was in force at the other gate after %s; promised are %s", worst, optOutWithin)
	}
	if worst := inProcess.worst(); worst > optOutWithin {
		t.Errorf("an opt-out was known at the other gate after %s; promised are %s", worst, optOutWithin)
	}
	inForce, _ = timed(t, f, w, optIn)
	t.Logf("an opt-in is in force at the other gate: %s", inForce)
	if worst := inForce.worst(); worst > optOutWithin {
		t.Errorf("an opt-in was in force at the other gate after %s; promised are %s", worst, optOutWithin)
	}
	inForce, inProcess = timed(t, f, w, hardHold)
	t.Logf("a hold is in force at the other gate: %s; known there in process: %s", inForce, inProcess)
	if late := inForce.at(0.99); late > holdWithin {
		// A machine that stands still for a second says nothing of a hold: it
		// has to do so twice.
		inForce, _ = timed(t, f, w, hardHold)
		t.Logf("and once more: %s", inForce)
		if again := inForce.at(0.99); again > holdWithin {
			t.Errorf("a hold was in force at the other gate after %s and %s in one of a hundred cases; promised is %s", late, again, holdWithin)
		}
	}
}

// timed makes a change of many people, one after the other, at the gates in
// turns. Known in process is what an overlay answers: it is exact, and reads
// nothing.
func timed(t *testing.T, f *fleet, w *world, c change) (inForce, inProcess durations) {
	t.Helper()
	for i, p := range w.take(t, c.who, samples) {
		here, there := f.gates[i%len(f.gates)], f.gates[(i+1)%len(f.gates)]
		if err := c.do(here, p.id); err != nil {
			t.Fatal(err)
		}
		acknowledged := time.Now()
		w.change(p.id, c)
		check := c.check
		check.User = p.id
		answer := func() decision {
			got, err := there.ask([]oracle.Check{check}, false)
			if err != nil {
				t.Fatal(err)
			}
			return got[0]
		}
		soon(t, "the change is in force", func() bool { return answer().Verdict == c.want })
		inForce = append(inForce, time.Since(acknowledged))
		if c.want != "suppress" {
			continue // nothing is allowed in process
		}
		soon(t, "the change is known in process", func() bool {
			d := answer()
			return d.Verdict == "suppress" && d.Exact && (d.Step == "global" || d.Step == "filter")
		})
		inProcess = append(inProcess, time.Since(acknowledged))
	}
	slices.Sort(inForce)
	slices.Sort(inProcess)
	return inForce, inProcess
}

// change tells the oracle what a gate has acknowledged.
func (w *world) change(user string, c change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.tell(w.oracle, user, time.Now())
}

// soon is until, at once and without a pause in between: what is waited for is
// timed, and a request takes long enough.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); {
		if time.Since(began) > patience {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// durations are sorted.
type durations []time.Duration

// at is the duration that a share of all do not exceed.
func (d durations) at(share float64) time.Duration {
	return d[min(len(d)-1, int(share*float64(len(d))))]
}

func (d durations) worst() time.Duration { return d[len(d)-1] }

func (d durations) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("p50 %s, p99 %s, worst %s (%d samples)", round(d.at(0.5)), round(d.at(0.99)), round(d.worst()), len(d))
}
