package sendgate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
)

// snapshot is a filter that answers the same of everybody.
type snapshot struct {
	says     sendgate.FilterAnswer // to Look
	hard     bool
	rejected int
}

func (s *snapshot) Look(sendgate.UserID, sendgate.Setting) sendgate.FilterAnswer { return s.says }

func (s *snapshot) LookHard(sendgate.UserID) sendgate.FilterAnswer {
	return sendgate.FilterAnswer{Loaded: s.says.Loaded, Current: s.says.Current, Hold: s.hard}
}

func (s *snapshot) Rejected(sendgate.UserID, sendgate.Setting) { s.rejected++ }

func filteredGate(w *world, s *snapshot) *sendgate.Gate {
	return sendgate.NewGate(sendgate.Options{
		Catalog: filterCatalog(), Overlay: w, Filter: s, Records: w, Caps: w, Observer: &watcher{}, CapsBesideRecords: true,
		Now: func() time.Time { return noon },
	})
}

// filterCatalog has topics of both policies that are off by default.
func filterCatalog() *sendgate.Catalog {
	text := string(catalogfile.SampleYAML()) + "  tips: {category: marketing, default: off}\n  offers: {category: transactional, default: off}\n"
	c, err := catalogfile.Parse("test", []byte(text))
	if err != nil {
		panic(err)
	}
	return c
}

// TestTheFilter is a table of what a filter may say, and what follows.
func TestTheFilter(t *testing.T) {
	down := func(w *world) { w.cacheDown = true }
	store := func(w *world) { w.cacheDown, w.storeUp = true, true }
	hint := func(c sendgate.Consent) func(*world) {
		return func(w *world) { w.hint, w.consents = true, map[sendgate.UserID]sendgate.Consent{"u": c} }
	}
	known := func(c sendgate.Consent) func(*world) {
		return func(w *world) { w.consents = map[sendgate.UserID]sendgate.Consent{"u": c} }
	}
	for _, c := range []struct {
		filter string // what it says: hold, hard, out, covered, in; `gap` if it is not current, `none` if there is none
		topic  string
		world  func(*world)
		want   string // verdict and how often records were read, and rejections reported
	}{
		// Nothing in the filter never allows by itself.
		{"", "promotions", nil, "allow default_on caps, 1 read, 0 rejected"},
		{"", "order_updates", nil, "allow default_on preference, 1 read, 0 rejected"},
		// A hit: the category says.
		{"out", "promotions", nil, "suppress opted_out filter inexact, 0 read, 1 rejected"},
		{"out", "order_updates", nil, "allow default_on preference, 1 read, 0 rejected"},
		{"hold", "promotions", nil, "suppress global_unsubscribe global inexact, 0 read, 1 rejected"},
		{"hold out", "promotions", nil, "suppress global_unsubscribe global inexact, 0 read, 1 rejected"},
		{"hold", "order_updates", nil, "allow default_on preference, 1 read, 0 rejected"},
		// While a change may have been missed, and without a snapshot, every rejection is verified.
		{"gap out", "promotions", nil, "allow default_on caps, 1 read, 0 rejected"},
		{"gap hold", "promotions", nil, "allow default_on caps, 1 read, 0 rejected"},
		{"gap covered", "tips", nil, "suppress default_off preference, 1 read, 0 rejected"},
		{"none out hold", "promotions", nil, "allow default_on caps, 1 read, 0 rejected"},
		{"none covered", "tips", nil, "suppress default_off preference, 1 read, 0 rejected"},
		// Off by default: no opt-in is certain, whatever the category says of hits.
		{"covered", "tips", nil, "suppress default_off filter, 0 read, 0 rejected"},
		{"covered out", "tips", nil, "suppress opted_out filter inexact, 0 read, 1 rejected"},
		{"covered out", "offers", nil, "suppress default_off preference, 1 read, 0 rejected"},
		{"covered hold", "tips", nil, "suppress global_unsubscribe global inexact, 0 read, 1 rejected"},
		{"covered hold", "offers", nil, "suppress default_off preference, 1 read, 0 rejected"},
		{"covered", "offers", nil, "suppress default_off filter, 0 read, 0 rejected"},
		{"covered in", "tips", nil, "suppress default_off preference, 1 read, 0 rejected"},
		{"", "tips", nil, "suppress default_off preference, 1 read, 0 rejected"},
		{"covered", "promotions", nil, "allow default_on caps, 1 read, 0 rejected"},
		// Essential: hard holds alone, verified.
		{"hold out", "security_alerts", nil, "allow essential global, 0 read, 0 rejected"},
		{"hard", "security_alerts", nil, "allow essential global, 1 read, 0 rejected"},
		{"hard", "security_alerts", down, "allow essential global degraded, 1 read, 0 rejected"},
		{"gap", "security_alerts", nil, "allow essential global, 1 read, 0 rejected"},
		{"none", "security_alerts", nil, "allow essential global, 1 read, 0 rejected"},
		// What the overlay knows of a user replaces the filter.
		{"hold out", "promotions", known(sendgate.Consent{Revision: 2}), "allow default_on caps, 1 read, 0 rejected"},
		{"covered", "tips", known(sendgate.Consent{Settings: settings("tips", true)}), "suppress default_off preference, 1 read, 0 rejected"},
		{"", "promotions", known(sendgate.Consent{Settings: settings("promotions", false)}), "suppress opted_out filter, 0 read, 0 rejected"},
		{"hold out", "promotions", hint(sendgate.Consent{}), "allow default_on caps, 1 read, 0 rejected"},
		{"hard", "security_alerts", known(sendgate.Consent{}), "allow essential global, 0 read, 0 rejected"},
		// Redis down.
		{"gap out", "promotions", down, "suppress opted_out preference inexact degraded retry 30T12:00:05.000, 1 read, 0 rejected"},
		{"gap hold", "promotions", down, "suppress global_unsubscribe preference inexact degraded retry 30T12:00:05.000, 1 read, 0 rejected"},
		{"gap covered", "tips", down, "suppress default_off preference inexact degraded retry 30T12:00:05.000, 1 read, 0 rejected"},
		{"gap", "promotions", down, "suppress unverifiable preference degraded retry 30T12:00:05.000, 1 read, 0 rejected"},
		{"none out", "promotions", down, "suppress unverifiable preference degraded retry 30T12:00:05.000, 1 read, 0 rejected"},
		{"out", "order_updates", down, "allow unverified preference degraded, 1 read, 0 rejected"},
		{"out", "order_updates", store, "allow default_on preference, 1 read, 0 rejected"},
		{"hold out", "promotions", func(w *world) { down(w); hint(sendgate.Consent{})(w) }, "suppress unverifiable preference degraded retry 30T12:00:05.000, 1 read, 0 rejected"},
	} {
		w, s := &world{}, &snapshot{}
		if c.world != nil {
			c.world(w)
		}
		says := func(word string) bool { return strings.Contains(" "+c.filter+" ", " "+word+" ") }
		s.says = sendgate.FilterAnswer{
			Loaded: !says("none"), Current: !says("none") && !says("gap"),
			Hold: says("hold"), OptedOut: says("out"), OptInsCovered: says("covered"), OptedIn: says("in"),
		}
		s.hard = says("hard")
		d, err := filteredGate(w, s).Decide(t.Context(), ask(c.topic))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s, %d read, %d rejected", summary(d), w.reads, s.rejected); got != c.want {
			t.Errorf("%q says the filter of %s: %s, not %s", c.filter, c.topic, got, c.want)
		}
		if d.InProcess != (w.reads == 0) {
			t.Errorf("%q, %s: in process %t with %d reads", c.filter, c.topic, d.InProcess, w.reads)
		}
	}
}

// TestExplainTheFilter shows that an explanation tells what the filter
// found, and goes on to the record.
func TestExplainTheFilter(t *testing.T) {
	w, s := &world{}, &snapshot{says: sendgate.FilterAnswer{Loaded: true, Current: true, OptedOut: true}}
	d, findings, err := filteredGate(w, s).Explain(t.Context(), ask("promotions"), time.Time{})
	if err != nil || summary(d) != "suppress opted_out filter inexact" || s.rejected != 0 {
		t.Errorf("%s, %d reported, %v", summary(d), s.rejected, err)
	}
	trace := fmt.Sprint(findings)
	for _, want := range []string{"no hold is in the filter", "an opt-out is in the filter", "default_on at revision 0"} {
		if !strings.Contains(trace, want) {
			t.Errorf("%q is not in %s", want, trace)
		}
	}
}
