package oracle_test

import (
	"net/url"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// history is one sequence of things that happen to a few users.
type history struct {
	*world
	g *generator
	// older are, by gate and user, the consents that a gate may still hold:
	// since it was last seen to know the latest, each one that was changed.
	older [2]map[string][]oracle.Consent
}

// runHistory makes up a history and lives through it.
func (w *world) runHistory(number int) {
	w.t.Helper()
	w.number, w.told = number, w.told[:0]
	w.oracle.Forget()
	h := &history{world: w, g: newGenerator(w.rand, number), older: [2]map[string][]oracle.Consent{{}, {}}}
	w.setCatalog(h.g.catalog)
	w.tell("catalog %s", asText{h.g.catalog})
	w.tell("clock   %s", w.now().Format(stamp))
	if h.g.chance(30) {
		h.nearZoneChange()
	}
	for range 20 + h.g.IntN(15) {
		h.step()
	}
	for _, user := range h.g.users {
		h.finish(user)
	}
}

// asText is formatted as JSON, when it is.
type asText struct{ v any }

func (a asText) String() string { return text(a.v) }

func (h *history) step() {
	h.t.Helper()
	switch n := h.g.IntN(100); {
	case n < 38:
		h.check(h.g.check(), h.g.IntN(2))
	case n < 46:
		h.comeBack()
	case n < 52:
		h.batch()
	case n < 58:
		h.explain()
	case n < 76:
		h.edit()
	case n < 79:
		h.unsubscribe()
	case n < 84:
		h.resubscribe()
	case n < 94:
		h.wait()
	case n < 97:
		h.reload()
	case n < 99:
		h.read(h.g.user())
	default:
		h.malformed()
	}
}

// heard waits until a gate knows the latest of a user.
func (h *history) heard(gate int, user string) {
	h.t.Helper()
	if len(h.older[gate][user]) > 0 {
		h.hear(gate, user)
		delete(h.older[gate], user)
	}
}

// check asks once, and takes the slot. A gate that may not have heard of the
// user's last change is asked at once now and then: it may reject by what it
// knew before, and whatever else it says must be by the latest.
func (h *history) check(c oracle.Check, gate int) (oracle.Decision, bool) {
	h.t.Helper()
	if h.g.chance(50) {
		h.heard(gate, c.User)
	}
	a := h.call(gate, "POST", "/v1/check", c)
	if fault := h.oracle.Fault(c); fault != nil {
		h.wantRefusal(a, fault)
		return oracle.Decision{}, false
	}
	if a.status != 200 {
		h.fail("want a decision")
	}
	var got decision
	h.world.read(a, &got)
	if h.stale(c, gate, got) {
		h.heard(gate, c.User)
		return h.check(c, gate)
	}
	want := h.oracle.Judge(c, h.exactly(), h.exactly(), true)
	h.wantDecision(c, got, want)
	return want, true
}

// stale tells whether a decision is a rejection, or that of an essential
// check, by something that the gate may still take for the latest.
func (h *history) stale(c oracle.Check, gate int, got decision) bool {
	if len(h.older[gate][c.User]) == 0 {
		return false
	}
	if want := h.oracle.Judge(c, h.exactly(), h.exactly(), false); got.Verdict == want.Verdict && got.Reason == want.Reason {
		return false
	}
	for _, old := range h.older[gate][c.User] {
		by := h.oracle.Consented(old, c)
		if by.Verdict != "" && sameDecision(c, got, by) == "" && (got.Step == "global" || got.Step == "filter") {
			return true
		}
	}
	return false
}

// comeBack asks, and where the answer is an instant asks again then. Nothing
// else has happened, so that it must be allowed. A millisecond before it may
// not be, unless the clock has not moved at all.
func (h *history) comeBack() {
	h.t.Helper()
	c, gate := h.g.check(), h.g.IntN(2)
	soonest := h.exactly().Add(2 * time.Millisecond)
	d, ok := h.check(c, gate)
	at := d.DeliverAt
	if at.IsZero() {
		at = d.RetryAt
	}
	if !ok || at.IsZero() {
		return
	}
	if early := at.Add(-time.Millisecond); h.g.chance(50) && early.After(soonest) {
		h.moveTo(early)
		if d, _ := h.check(c, 1-gate); d.Verdict == "allow" {
			h.fail("it was allowed a millisecond before %s", at.Format(stamp))
		}
	}
	h.moveTo(at)
	if d, _ := h.check(c, 1-gate); d.Verdict != "allow" {
		h.fail("asked again at %s, it must be allowed", at.Format(stamp))
	}
}

func (h *history) batch() {
	h.t.Helper()
	gate, reserve := h.g.IntN(2), h.g.chance(60)
	var checks []oracle.Check
	one, same := h.g.user(), h.g.chance(60)
	for range 1 + h.g.IntN(6) {
		c := h.g.check()
		if same {
			c.User = one
		}
		h.heard(gate, c.User)
		checks = append(checks, c)
	}
	h.askAll(gate, checks, reserve)
}

// askAll asks a batch. Slots are given in the order of the list.
func (h *history) askAll(gate int, checks []oracle.Check, reserve bool) {
	h.t.Helper()
	body := map[string]any{"checks": checks}
	if !reserve || h.g.chance(50) {
		body["reserve"] = reserve
	}
	a := h.call(gate, "POST", "/v1/check/batch", body)
	var got struct {
		Decisions []decision `json:"decisions"`
	}
	if a.status == 200 {
		h.world.read(a, &got)
	}
	if len(got.Decisions) != len(checks) {
		h.fail("want %d decisions", len(checks))
	}
	for i, c := range checks {
		h.tell("  item %d", i)
		if fault := h.oracle.Fault(c); fault != nil {
			if got := got.Decisions[i].Error; got == nil || got.Code != fault.Codes[0] {
				h.fail("item %d: want an error %v", i, fault.Codes)
			}
			continue
		}
		h.wantDecision(c, got.Decisions[i], h.oracle.Judge(c, h.exactly(), h.exactly(), reserve))
	}
}

// explain asks what a look would say, now or at another instant.
func (h *history) explain() {
	h.t.Helper()
	c, gate, at := h.g.check(), h.g.IntN(2), h.exactly()
	h.heard(gate, c.User)
	body := struct {
		oracle.Check
		At string `json:"at,omitempty"`
	}{Check: c}
	if h.g.chance(50) {
		at = at.Add(time.Duration(h.g.Int64N(int64(72*time.Hour))) - 24*time.Hour).Truncate(time.Millisecond)
		body.At = at.Format(stamp)
	}
	a := h.call(gate, "POST", "/v1/explain", body)
	if fault := h.oracle.Fault(c); fault != nil {
		h.wantRefusal(a, fault)
		return
	}
	var got decision
	h.world.read(a, &got)
	h.wantDecision(c, got, h.oracle.Judge(c, h.exactly(), at, false))
	if len(got.Trace) == 0 {
		h.fail("there is no trace")
	}
}

// read reads a user's document at either gate.
func (h *history) read(user string) {
	h.t.Helper()
	h.wantDocument(h.call(h.g.IntN(2), "GET", path(user), nil), user)
}

func (h *history) reload() {
	h.t.Helper()
	h.g.catalog = edited(h.g.base, h.g.Rand)
	h.tell("catalog %s", asText{h.g.catalog})
	h.setCatalog(h.g.catalog)
}

// malformed sends an edit that is refused before it is read.
func (h *history) malformed() {
	h.t.Helper()
	one := pick(h.g.Rand, []struct{ body, code string }{
		{`{"preferences": [], "preferences": []}`, "duplicate_field"},
		{`{"Preferences": []}`, "unknown_field"},
		{`{"prefs": []}`, "unknown_field"},
		{`{"preferences": []} {}`, "malformed_json"},
		{`{"preferences": [`, "malformed_json"},
	})
	a := h.call(h.g.IntN(2), "PATCH", path(h.g.user()), one.body)
	h.wantRefusal(a, &oracle.Refusal{Status: 400, Codes: []string{one.code}})
}

// finish holds a user's document and audit log against the oracle.
func (h *history) finish(user string) {
	h.t.Helper()
	h.read(user)
	var got struct {
		Changes []struct {
			Revision int `json:"revision"`
		} `json:"changes"`
	}
	a := h.call(h.g.IntN(2), "GET", "/v1/users/"+url.PathEscape(user)+"/changes?after=0&limit=100", nil)
	unmarshal(h.world, a, &got)
	if len(got.Changes) != h.oracle.Revision(user) {
		h.fail("want one entry of the audit log for each of %d revisions", h.oracle.Revision(user))
	}
	for i, change := range got.Changes {
		if change.Revision != i+1 {
			h.fail("entry %d of the audit log is of revision %d", i, change.Revision)
		}
	}
}
