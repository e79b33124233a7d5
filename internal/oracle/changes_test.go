package oracle_test

import (
	"fmt"
	"net/url"

	"github.com/sendgate/sendgate/internal/oracle"
)

func path(user string) string { return "/v1/users/" + url.PathEscape(user) + "/preferences" }

// changed runs a change of a user at a gate, and notes that the other gate may
// not have heard of it.
func (h *history) changed(gate int, user string, change func() answer) {
	before, revision := h.oracle.Consent(user), h.oracle.Revision(user)
	a := change()
	if h.oracle.Revision(user) == revision {
		return
	}
	h.older[1-gate][user] = append(h.older[1-gate][user], before)
	if a.took > promptly {
		h.heard(1-gate, user)
	}
}

func (h *history) edit() {
	h.t.Helper()
	user, gate := h.g.user(), h.g.IntN(2)
	if h.g.chance(12) {
		h.giveBack(user, gate)
		return
	}
	h.changed(gate, user, func() answer {
		e := h.g.edit(user, h.now(), h.oracle.Revision(user))
		var header []string
		if e.IfMatch != nil {
			header = []string{"If-Match", fmt.Sprintf("%q", fmt.Sprint(*e.IfMatch))}
		}
		a := h.call(gate, pick(h.g.Rand, []string{"PUT", "PATCH"}), path(user), editBody(e), header...)
		if refusal := h.oracle.Edit(user, e, h.now()); refusal != nil {
			h.wantRefusal(a, refusal)
		} else {
			h.wantDocument(a, user)
		}
		return a
	})
}

// giveBack puts the body of a GET as it was, which changes nothing.
func (h *history) giveBack(user string, gate int) {
	h.t.Helper()
	a := h.call(gate, "GET", path(user), nil)
	h.wantDocument(a, user)
	h.wantDocument(h.call(1-gate, "PUT", path(user), string(a.body), "If-Match", a.etag), user)
}

func (h *history) unsubscribe() {
	h.t.Helper()
	b, gate := h.g.unsubscribe(h.g.user()), h.g.IntN(2)
	h.changed(gate, b.User, func() answer {
		a := h.call(gate, "POST", "/v1/preferences/unsubscribe-all", b)
		want, refusal := h.oracle.Unsubscribe(b, h.now())
		h.wantHold(b, a, want, refusal)
		return a
	})
}

func (h *history) resubscribe() {
	h.t.Helper()
	b, gate := h.g.resubscribe(h.g.user()), h.g.IntN(2)
	h.changed(gate, b.User, func() answer {
		a := h.call(gate, "POST", "/v1/preferences/resubscribe", b)
		want, refusal := h.oracle.Resubscribe(b, h.now())
		h.wantHold(b, a, want, refusal)
		return a
	})
}

func (h *history) wantHold(b oracle.Unsubscribe, a answer, want oracle.HoldAnswer, refusal *oracle.Refusal) {
	h.t.Helper()
	if refusal != nil {
		h.wantRefusal(a, refusal)
		return
	}
	var got holdAnswer
	if a.status == 200 {
		h.world.read(a, &got)
	}
	said := oracle.HoldAnswer{
		Global: got.Global, EssentialOnly: got.Essential, Topics: got.Topics, Channels: got.Channels, EffectiveAt: got.EffectiveAt.Time,
	}
	if want.EffectiveAt.IsZero() {
		want.EffectiveAt = said.EffectiveAt // of nothing lifted, no instant is the right one
	}
	if said != want || got.User != b.User {
		h.fail("want %s", text(want))
	}
}
