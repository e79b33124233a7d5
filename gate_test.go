package sendgate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/quiet"
)

// world is what a gate asks, told by hand.
type world struct {
	consents  map[sendgate.UserID]sendgate.Consent
	hint      bool // consents are hints only
	records   map[sendgate.UserID]*sendgate.Preferences
	cacheDown bool // and with it every record, unless storeUp
	storeUp   bool
	capsErr   error
	unjudged  map[time.Duration]bool      // windows of caps that cannot be judged though others can
	full      map[time.Duration]time.Time // by window: when a full cap has room again
	used      int
	// remembered is what is remembered of anybody's record; nil is nothing.
	remembered *sendgate.Preferences

	reads, judged, charged int
	held, refuted          int // of what was remembered
	asks                   []sendgate.CapAsk
	reports                []sendgate.CapReport
}

func (w *world) Consent(user sendgate.UserID) (sendgate.Consent, bool, bool) {
	c, ok := w.consents[user]
	return c, ok && !w.hint, ok
}

func (w *world) Read(_ context.Context, asks []sendgate.RecordAsk) []sendgate.RecordAnswer {
	w.reads++
	answers := make([]sendgate.RecordAnswer, len(asks))
	for i, a := range asks {
		if w.cacheDown && (!w.storeUp || !a.FallBack) {
			answers[i] = sendgate.RecordAnswer{CacheDown: true, Err: errors.New("down")}
			continue
		}
		answers[i].CacheDown = w.cacheDown
		if answers[i].Preferences = w.records[a.User]; answers[i].Preferences == nil {
			answers[i].Preferences = &sendgate.Preferences{}
		}
	}
	return answers
}

func (w *world) Judge(_ context.Context, asks []sendgate.CapAsk, take int) []sendgate.CapAnswer {
	w.judged++
	w.asks = append(w.asks, asks...)
	answers := make([]sendgate.CapAnswer, len(asks))
	for i, ask := range asks {
		if ask.Presumed != "" && w.cacheDown {
			answers[i].Err = errors.New("down")
			continue
		}
		if answers[i].Refuted = ask.Presumed != "" && ask.Presumed != valueOf(w.records[ask.User]); answers[i].Refuted {
			continue
		}
		if answers[i].Err = w.capsErr; w.capsErr != nil {
			continue
		}
		answers[i].Admitted = true
		for _, c := range ask.Caps {
			if w.unjudged[c.Window] {
				answers[i].Admitted, answers[i].Err = false, errors.New("down")
				answers[i].Caps = append(answers[i].Caps, sendgate.CapState{Unjudged: true})
				continue
			}
			resets, full := w.full[c.Window]
			answers[i].Admitted = answers[i].Admitted && !full
			answers[i].Caps = append(answers[i].Caps, sendgate.CapState{Cap: c.Cap, Used: w.used, Full: full, ResetsAt: resets})
		}
		switch {
		case ask.Look || !answers[i].Admitted:
		case take > 0 && w.charged == take:
			answers[i].Admitted, answers[i].Passed = false, true
		default:
			w.charged++
		}
	}
	return answers
}

// valueOf stands for what the cache holds of preferences.
func valueOf(p *sendgate.Preferences) string { return fmt.Sprintf("%p", p) }

func (w *world) Recall(_ sendgate.UserID, atLeast int64) sendgate.Remembered {
	if w.remembered == nil || w.remembered.Revision < atLeast {
		return sendgate.Remembered{}
	}
	return sendgate.Remembered{Preferences: w.remembered, Value: valueOf(w.remembered)}
}

func (w *world) Tried(_ sendgate.UserID, _ sendgate.Remembered, held bool) {
	if held {
		w.held++
	} else {
		w.refuted++
	}
}

func (w *world) Settle(_ context.Context, reports []sendgate.CapReport) []sendgate.CapReceipt {
	w.reports = append(w.reports, reports...)
	receipts := make([]sendgate.CapReceipt, len(reports))
	for i := range receipts {
		receipts[i].Status = sendgate.StatusSettled
	}
	return receipts
}

type watcher struct{ decided, settled, zones int }

func (w *watcher) Decided(*sendgate.Check, *sendgate.Decision, sendgate.Mode) { w.decided++ }
func (w *watcher) Settled(*sendgate.Settlement)                               { w.settled++ }
func (w *watcher) StepTook(sendgate.Step, int, time.Duration)                 {}
func (w *watcher) ZoneFellBack()                                              { w.zones++ }

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newGate(w *world, catalog *sendgate.Catalog, at time.Time) (*sendgate.Gate, *watcher) {
	o := &watcher{}
	return sendgate.NewGate(sendgate.Options{
		Catalog: catalog, Overlay: w, Records: w, Memory: w, Caps: w, Observer: o, CapsBesideRecords: true,
		Now: func() time.Time { return at },
	}), o
}

func ask(topic string) sendgate.Check {
	return sendgate.Check{NotificationID: "n", User: "u", Topic: topic, Channel: "push"}
}

// summary is a decision as the tables below write it.
func summary(d sendgate.Decision) string {
	s := fmt.Sprintf("%s %s %s", d.Verdict, d.Reason, d.Step)
	if !d.Exact {
		s += " inexact"
	}
	if d.Degraded {
		s += " degraded"
	}
	if !d.DeliverAt.IsZero() {
		s += " deliver " + d.DeliverAt.UTC().Format("02T15:04:05.000")
	}
	if !d.RetryAt.IsZero() {
		s += " retry " + d.RetryAt.UTC().Format("02T15:04:05.000")
	}
	return s
}

func settings(topic string, on bool) sendgate.Settings {
	return sendgate.Settings{{Topic: topic, Channel: "push"}: on}
}

var (
	softHold = []sendgate.Hold{{Source: sendgate.SourceUser, Reason: "user_requested", RetainEssential: true}}
	hardHold = []sendgate.Hold{{Source: sendgate.SourceUser, Reason: "account_deletion"}}
)

func nightIn(zone string) *sendgate.QuietHours {
	w, err := quiet.NewWindow("22:00", "08:00", nil)
	if err != nil {
		panic(err)
	}
	return &sendgate.QuietHours{Enabled: true, Window: &w, Timezone: zone}
}

func TestVerdicts(t *testing.T) {
	night := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	record := func(p sendgate.Preferences) map[sendgate.UserID]*sendgate.Preferences {
		return map[sendgate.UserID]*sendgate.Preferences{"u": &p}
	}
	everything := sendgate.Preferences{Settings: sendgate.Settings{{Topic: "security_alerts", Channel: "push"}: false, {Topic: "promotions", Channel: "push"}: false}, Holds: softHold, QuietHours: nightIn("UTC")}
	for _, c := range []struct {
		name  string
		world world
		topic string
		at    time.Time
		want  string
	}{
		{"nothing known of the user", world{}, "promotions", noon, "allow default_on caps"},
		{"a category without caps or quiet hours", world{}, "order_updates", noon, "allow default_on preference"},
		{"opted in", world{records: record(sendgate.Preferences{Settings: settings("promotions", true)})}, "promotions", noon, "allow opted_in caps"},
		{"opted out", world{records: record(sendgate.Preferences{Settings: settings("promotions", false)})}, "promotions", noon, "suppress opted_out preference"},
		{"hold", world{records: record(sendgate.Preferences{Holds: softHold, Settings: settings("promotions", true)})}, "promotions", noon, "suppress global_unsubscribe preference"},

		{"all against it, essential", world{records: record(everything), full: map[time.Duration]time.Time{day: noon}}, "security_alerts", night, "allow essential global"},
		{"all against it, marketing", world{records: record(everything), full: map[time.Duration]time.Time{day: noon}}, "promotions", night, "suppress global_unsubscribe preference"},
		{"hard hold, essential", world{records: record(sendgate.Preferences{Holds: hardHold})}, "security_alerts", noon, "suppress global_unsubscribe global"},
		{"hard hold, essential, from the overlay", world{consents: map[sendgate.UserID]sendgate.Consent{"u": {Hard: true, Global: true}}}, "security_alerts", noon, "suppress global_unsubscribe global"},
		{"no hard hold in the overlay", world{consents: map[sendgate.UserID]sendgate.Consent{"u": {Global: true}}}, "security_alerts", noon, "allow essential global"},

		{"hold in the overlay", world{consents: map[sendgate.UserID]sendgate.Consent{"u": {Global: true}}}, "promotions", noon, "suppress global_unsubscribe global"},
		{"opt-out in the overlay", world{consents: map[sendgate.UserID]sendgate.Consent{"u": {Settings: settings("promotions", false)}}}, "promotions", noon, "suppress opted_out filter"},
		{"opt-out in the overlay that is a hint, refuted", world{hint: true, consents: map[sendgate.UserID]sendgate.Consent{"u": {Settings: settings("promotions", false)}}}, "promotions", noon, "allow default_on caps"},
		{"opt-in in the overlay never allows by itself", world{consents: map[sendgate.UserID]sendgate.Consent{"u": {Settings: settings("promotions", true)}}, records: record(sendgate.Preferences{Settings: settings("promotions", false)})}, "promotions", noon, "suppress opted_out preference"},

		{"quiet", world{records: record(sendgate.Preferences{QuietHours: nightIn("UTC")})}, "promotions", night, "defer quiet_hours quiet_hours deliver 01T08:00:00.000"},
		{"quiet hours switched off", world{records: record(sendgate.Preferences{QuietHours: &sendgate.QuietHours{Window: nightIn("UTC").Window, Timezone: "UTC"}})}, "promotions", night, "allow default_on caps"},
		{"quiet, transactional", world{records: record(sendgate.Preferences{QuietHours: nightIn("UTC")})}, "order_updates", night, "allow default_on preference"},
		{"quiet elsewhere", world{records: record(sendgate.Preferences{QuietHours: nightIn("Asia/Tokyo")})}, "promotions", noon.Add(4 * time.Hour), "defer quiet_hours quiet_hours deliver 30T23:00:00.000"},
		{"zone not known: the default", world{records: record(sendgate.Preferences{QuietHours: nightIn("Mars/Base")})}, "promotions", night, "defer quiet_hours quiet_hours deliver 01T08:00:00.000"},
		{"quiet, and the cap has room later", world{records: record(sendgate.Preferences{QuietHours: nightIn("UTC")}), full: map[time.Duration]time.Time{day: night.Add(12 * time.Hour)}}, "promotions", night, "defer quiet_hours quiet_hours deliver 01T11:00:00.000"},
		{"quiet, and the cap has room at night", world{records: record(sendgate.Preferences{QuietHours: nightIn("UTC")}), full: map[time.Duration]time.Time{day: night.Add(24 * time.Hour)}}, "promotions", night, "defer quiet_hours quiet_hours deliver 02T08:00:00.000"},
		{"quiet, and the cap is never", world{records: record(sendgate.Preferences{QuietHours: nightIn("UTC")}), full: map[time.Duration]time.Time{day: {}}}, "promotions", night, "defer quiet_hours quiet_hours"},
		{"quiet, caps not known", world{records: record(sendgate.Preferences{QuietHours: nightIn("UTC")}), capsErr: errors.New("down")}, "promotions", night, "defer quiet_hours quiet_hours deliver 01T08:00:00.000"},

		{"cap full", world{full: map[time.Duration]time.Time{day: noon.Add(time.Hour)}}, "promotions", noon, "suppress frequency_cap caps retry 30T13:00:00.000"},
		{"cap full until it is quiet", world{records: record(sendgate.Preferences{QuietHours: nightIn("UTC")}), full: map[time.Duration]time.Time{day: noon.Add(11 * time.Hour)}}, "promotions", noon, "suppress frequency_cap caps retry 01T08:00:00.000"},
		{"cap with room by now, by another clock", world{full: map[time.Duration]time.Time{day: noon.Add(-time.Hour)}}, "promotions", noon, "suppress frequency_cap caps retry 30T12:00:00.001"},
		{"cap of zero", world{full: map[time.Duration]time.Time{day: {}}}, "promotions", noon, "suppress frequency_cap caps"},

		// What happens when something is down.
		{"Redis down, transactional: the store", world{cacheDown: true, storeUp: true, records: record(sendgate.Preferences{Settings: settings("order_updates", false)})}, "order_updates", noon, "suppress opted_out preference"},
		{"Redis and store down, transactional", world{cacheDown: true}, "order_updates", noon, "allow unverified preference degraded"},
		{"Redis down, marketing", world{cacheDown: true, storeUp: true}, "promotions", noon, "suppress unverifiable preference degraded retry 30T12:00:05.000"},
		{"Redis down, opt-out known, transactional", world{cacheDown: true, hint: true, consents: map[sendgate.UserID]sendgate.Consent{"u": {Settings: settings("order_updates", false)}}}, "order_updates", noon, "suppress opted_out preference degraded"},
		{"Redis down, opt-out known, marketing", world{cacheDown: true, consents: map[sendgate.UserID]sendgate.Consent{"u": {Settings: settings("promotions", false)}}}, "promotions", noon, "suppress opted_out filter"},
		{"Redis down, essential", world{cacheDown: true}, "security_alerts", noon, "allow essential global degraded"},
		{"Redis down, essential, hard hold hinted at", world{cacheDown: true, hint: true, consents: map[sendgate.UserID]sendgate.Consent{"u": {Hard: true, Global: true}}}, "security_alerts", noon, "suppress global_unsubscribe global degraded"},
		{"cap store down, marketing", world{capsErr: errors.New("down")}, "promotions", noon, "suppress unverifiable caps degraded retry 30T12:00:05.000"},
		{"cap store down, no caps", world{capsErr: errors.New("down")}, "order_updates", noon, "allow default_on preference"},
	} {
		// Whatever is remembered of the record, the decision is the same.
		for remembered, p := range map[string]*sendgate.Preferences{
			"nothing": nil, "what it is": c.world.records["u"], "no choice": {}, "an opt-in": {Settings: settings(c.topic, true)},
			"an opt-out": {Settings: settings(c.topic, false)}, "quiet hours": {QuietHours: nightIn("UTC")}, "no night": {QuietHours: nightIn("Asia/Tokyo")},
		} {
			t.Run(c.name+"/"+remembered, func(t *testing.T) {
				w := c.world
				w.remembered = p
				gate, observed := newGate(&w, catalogfile.Sample(), c.at)
				d, err := gate.Decide(t.Context(), ask(c.topic))
				if err != nil {
					t.Fatal(err)
				}
				if got := summary(d); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				if charged := d.Verdict == sendgate.Allow && d.Step == sendgate.StepCaps; (w.charged == 1) != charged {
					t.Errorf("charged %d caps for %s", w.charged, summary(d))
				}
				if observed.decided != 1 {
					t.Errorf("%d decisions were observed", observed.decided)
				}
			})
		}
	}
}

func TestPreferenceTable(t *testing.T) {
	// Every combination of the global flag, the setting and the topic's default.
	for _, flag := range []bool{false, true} {
		for _, setting := range []string{"unset", "in", "out"} {
			for _, def := range []string{"on", "off"} {
				p := sendgate.Preferences{}
				if flag {
					p.Holds = softHold
				}
				want := map[string]string{"unset": "allow default_on", "in": "allow opted_in", "out": "suppress opted_out"}[setting]
				if setting != "unset" {
					p.Settings = settings("t", setting == "in")
				} else if def == "off" {
					want = "suppress default_off"
				}
				if flag {
					want = "suppress global_unsubscribe"
				}
				catalog, err := catalogfile.Parse("t", []byte("default_timezone: UTC\nchannels: [push]\ncategories: {c: {class: marketing}}\ntopics: {t: {category: c, default: "+def+"}}\n"))
				if err != nil {
					t.Fatal(err)
				}
				gate, _ := newGate(&world{records: map[sendgate.UserID]*sendgate.Preferences{"u": &p}}, catalog, noon)
				d, err := gate.Decide(t.Context(), ask("t"))
				if got := fmt.Sprintf("%s %s", d.Verdict, d.Reason); err != nil || got != want {
					t.Errorf("flag %t, setting %s, default %s: got %s (%v), want %s", flag, setting, def, got, err, want)
				}
			}
		}
	}
}

func TestListFailsItemByItem(t *testing.T) {
	w := &world{}
	gate, _ := newGate(w, catalogfile.Sample(), noon)
	bad := ask("nonesuch")
	results := gate.DecideAll(t.Context(), []sendgate.Check{ask("promotions"), bad, ask("security_alerts"), {}}, sendgate.Reserve, 0)
	if results[0].Err != nil || results[2].Err != nil || w.charged != 1 {
		t.Errorf("the good ones: %v, %v, %d charged", results[0].Err, results[2].Err, w.charged)
	}
	if sendgate.CodeOf(results[1].Err) != sendgate.CodeUnknownTopic {
		t.Errorf("an unknown topic: %v", results[1].Err)
	}
	var many sendgate.Errors
	if !errors.As(results[3].Err, &many) || len(many) != 4 {
		t.Errorf("an empty check: %v", results[3].Err)
	}
	if w.reads != 2 || w.judged != 1 {
		t.Errorf("%d reads (one for essential checks, one for the rest) and %d judgements", w.reads, w.judged)
	}
}

func TestLookChargesNothing(t *testing.T) {
	w := &world{}
	gate, observed := newGate(w, catalogfile.Sample(), noon)
	gate.DecideAll(t.Context(), []sendgate.Check{ask("promotions")}, sendgate.Look, 0)
	if _, _, err := gate.Explain(t.Context(), ask("promotions"), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if w.charged != 0 || w.judged != 2 || observed.decided != 1 {
		t.Errorf("charged %d, judged %d, observed %d", w.charged, w.judged, observed.decided)
	}
}

func TestExplainGoesOn(t *testing.T) {
	p := sendgate.Preferences{Revision: 3, Settings: settings("promotions", false), QuietHours: nightIn("UTC")}
	w := &world{records: map[sendgate.UserID]*sendgate.Preferences{"u": &p}, full: map[time.Duration]time.Time{24 * time.Hour: noon.Add(time.Hour)}}
	gate, _ := newGate(w, catalogfile.Sample(), noon)
	d, trace, err := gate.Explain(t.Context(), ask("promotions"), noon.Add(11*time.Hour))
	if err != nil || summary(d) != "suppress opted_out preference" || len(d.Caps) != 0 {
		t.Errorf("%s (%v), caps %v", summary(d), err, d.Caps)
	}
	want := []string{
		"global: nothing is known in process of this user",
		"filter: nothing is known in process of this user",
		"preference: opted_out at revision 3",
		"quiet_hours: inside quiet hours in UTC until 2026-12-01T08:00:00Z",
		"caps: 1 of 1 caps are full",
	}
	for i, f := range trace {
		if got := f.Step.String() + ": " + f.Finding; got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
	if len(trace) != len(want) {
		t.Errorf("%d findings", len(trace))
	}
}

func TestZoneFallBackIsCounted(t *testing.T) {
	p := sendgate.Preferences{QuietHours: nightIn("Mars/Base")}
	gate, observed := newGate(&world{records: map[sendgate.UserID]*sendgate.Preferences{"u": &p}}, catalogfile.Sample(), noon)
	if _, err := gate.Decide(t.Context(), ask("promotions")); err != nil || observed.zones != 1 {
		t.Errorf("%d fallbacks (%v)", observed.zones, err)
	}
}

func TestOneRedisIsNotAskedTwice(t *testing.T) {
	// A category that allows what it cannot verify, with a cap.
	catalog, err := catalogfile.Parse("t", []byte("default_timezone: UTC\nchannels: [push]\ncategories: {c: {class: transactional, caps: [{by: [], window: 24h, limit: 1}]}}\ntopics: {t: {category: c}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{cacheDown: true, storeUp: true}
	gate, _ := newGate(w, catalog, noon)
	d, err := gate.Decide(t.Context(), ask("t"))
	if got := summary(d); err != nil || got != "allow unverified caps degraded" || w.judged != 0 {
		t.Errorf("%s (%v), the caps were asked %d times", got, err, w.judged)
	}
}
