package sendgate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
)

// TestWhatAPresumptionSaves counts the round trips of a check, by what is
// remembered of its user's record.
func TestWhatAPresumptionSaves(t *testing.T) {
	in := &sendgate.Preferences{Revision: 3, Settings: settings("promotions", true), QuietHours: nightIn("UTC")}
	out := &sendgate.Preferences{Revision: 3, Settings: settings("promotions", false)}
	night := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	known := func(revision int64) map[sendgate.UserID]sendgate.Consent {
		return map[sendgate.UserID]sendgate.Consent{"u": {Revision: revision}}
	}
	for _, c := range []struct {
		name            string
		is, remembered  *sendgate.Preferences
		known           int64
		at              time.Time
		reads, judged   int
		held, refuted   int
		topic, decision string
	}{
		{"nothing is remembered", in, nil, 0, noon, 1, 1, 0, 0, "promotions", "allow opted_in caps"},
		{"it holds", in, in, 0, noon, 0, 1, 1, 0, "promotions", "allow opted_in caps"},
		{"it holds, at a revision that is known", in, in, 3, noon, 0, 1, 1, 0, "promotions", "allow opted_in caps"},
		{"a later revision is known", in, in, 4, noon, 1, 1, 0, 0, "promotions", "allow opted_in caps"},
		{"it is another", out, in, 0, noon, 1, 1, 0, 1, "promotions", "suppress opted_out preference"},
		{"it is another, and allows", &sendgate.Preferences{}, in, 0, noon, 1, 2, 0, 1, "promotions", "allow default_on caps"},
		{"quiet hours are dated by a look, which proves them", in, in, 0, night, 0, 1, 1, 0, "promotions", "defer quiet_hours quiet_hours deliver 01T08:00:00.000"},
		{"quiet hours are no more", &sendgate.Preferences{}, in, 0, night, 1, 2, 0, 1, "promotions", "allow default_on caps"},
		{"an opt-out is read", in, out, 0, noon, 1, 1, 0, 0, "promotions", "allow opted_in caps"},
		{"without caps nothing can be proved", in, in, 0, noon, 1, 0, 0, 0, "order_updates", "allow default_on preference"},
		{"what is essential has no caps", in, in, 0, noon, 1, 0, 0, 0, "security_alerts", "allow essential global"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{records: map[sendgate.UserID]*sendgate.Preferences{"u": c.is}, remembered: c.remembered}
			if c.known > 0 {
				w.consents = known(c.known)
			}
			gate, _ := newGate(w, catalogfile.Sample(), c.at)
			d, err := gate.Decide(t.Context(), ask(c.topic))
			if got := summary(d); err != nil || got != c.decision {
				t.Errorf("%s, %v, not %s", got, err, c.decision)
			}
			got, want := fmt.Sprint(w.reads, w.judged, w.held, w.refuted), fmt.Sprint(c.reads, c.judged, c.held, c.refuted)
			if got != want {
				t.Errorf("reads, judged, held, refuted: %s, not %s", got, want)
			}
		})
	}
}

// TestPresumptionsOfAList has two topics of one user and another user in a list: of
// one user's checks all are read as soon as one has to be.
func TestPresumptionsOfAList(t *testing.T) {
	record := &sendgate.Preferences{Settings: settings("newsletter", false)}
	w := &world{records: map[sendgate.UserID]*sendgate.Preferences{"u": record, "v": record}, remembered: record}
	gate, _ := newGate(w, catalogfile.Sample(), noon)
	of := func(user sendgate.UserID, topic string) sendgate.Check {
		c := ask(topic)
		c.User = user
		return c
	}
	list := []sendgate.Check{of("u", "promotions"), of("v", "promotions"), of("u", "newsletter"), of("v", "promotions")}
	for i, r := range gate.DecideAll(t.Context(), list, sendgate.Reserve, 0) {
		if want := i != 2; r.Err != nil || (r.Decision.Verdict == sendgate.Allow) != want {
			t.Errorf("%d: %s, %v", i, summary(r.Decision), r.Err)
		}
	}
	presumed := ""
	for _, a := range w.asks {
		presumed += fmt.Sprint(a.User, a.Presumed != "", " ")
	}
	if w.reads != 1 || w.judged != 1 || presumed != "ufalse vtrue vtrue " {
		t.Errorf("%d reads, %d calls, %s", w.reads, w.judged, presumed)
	}
	// Only so many are taken by what is read.
	w.asks = nil
	gate.DecideAll(t.Context(), list[:1], sendgate.Reserve, 1)
	if w.asks[0].Presumed != "" {
		t.Error("something is presumed where only so many are taken")
	}
	if _, _, err := gate.Explain(t.Context(), list[0], time.Time{}); err != nil || w.asks[1].Presumed != "" {
		t.Errorf("an explanation presumes something: %v", err)
	}
}
