package sendgate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
)

// capCatalog has one topic of each class under caps of its own.
func capCatalog(t *testing.T, marketing, transactional sendgate.CategorySpec) *sendgate.Catalog {
	t.Helper()
	marketing.Class, transactional.Class = "marketing", "transactional"
	c, err := sendgate.NewCatalog(sendgate.CatalogSpec{
		DefaultTimezone: "UTC", Channels: []string{"push", "email"},
		Categories: map[string]sendgate.CategorySpec{"m": marketing, "t": transactional, "e": {Class: "essential"}},
		Topics:     map[string]sendgate.TopicSpec{"ads": {Category: "m"}, "orders": {Category: "t"}, "alarms": {Category: "e"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func limitOf(n int) *int { return &n }

// asked lists the caps that were asked of the world, one ask a line.
func asked(w *world) (lines []string) {
	for _, a := range w.asks {
		line := fmt.Sprintf("%s %s hold %s:", a.User, a.Channel, a.Hold)
		for _, c := range a.Caps {
			line += fmt.Sprintf(" %s of %s %q %s by %s %d/%d", c.Kind, c.Subject, c.SubjectID, c.Span(), strings.Join(c.Values, ","), c.Room, c.Limit)
		}
		lines = append(lines, line)
	}
	w.asks = nil
	return lines
}

func TestCapsAreBoundToTheCheck(t *testing.T) {
	catalog := capCatalog(t, sendgate.CategorySpec{
		Count: "on_delivery", Hold: "5m",
		Caps: []sendgate.CapSpec{
			{By: []sendgate.Field{"category"}, Window: "24h", Limit: limitOf(5), Keep: &sendgate.KeepSpec{Slots: 2, For: "high"}},
			{Subject: "household_id", By: []sendgate.Field{}, Window: "7d", Kind: "buckets", Limit: limitOf(9)},
			{By: []sendgate.Field{"channel"}, Window: "month", Kind: "calendar", Limit: limitOf(3), Keep: &sendgate.KeepSpec{Slots: 3, For: "normal"}},
		},
	}, sendgate.CategorySpec{})
	w := &world{}
	gate, _ := newGate(w, catalog, noon)
	for _, c := range []struct {
		priority  sendgate.Priority
		household string
		want      string
	}{
		{sendgate.PriorityNormal, "", `u push hold 5m0s: rolling of  "u" 24h by m 3/5 calendar of  "u" month by push 3/3`},
		{sendgate.PriorityHigh, "h", `u push hold 5m0s: rolling of  "u" 24h by m 5/5 buckets of household_id "h" 7d by  9/9 calendar of  "u" month by push 3/3`},
		{sendgate.PriorityLow, "", `u push hold 5m0s: rolling of  "u" 24h by m 3/5 calendar of  "u" month by push 0/3`},
	} {
		check := ask("ads")
		check.Priority, check.HouseholdID = c.priority, c.household
		if _, err := gate.Decide(t.Context(), check); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{c.want}, asked(w)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// fixedLimits are limits of single values: by field, value and window.
type fixedLimits map[string][]sendgate.ValueLimit

func (f fixedLimits) None() bool { return len(f) == 0 }

func (f fixedLimits) Of(by []sendgate.Field, values []string) []sendgate.ValueLimit {
	return f[fmt.Sprint(by, values)]
}

func TestLimitsOfSingleValues(t *testing.T) {
	catalog := capCatalog(t, sendgate.CategorySpec{Caps: []sendgate.CapSpec{
		{By: []sendgate.Field{"sender_id", "campaign_id"}, Window: "24h", Limit: limitOf(5)},
		{By: []sendgate.Field{"campaign_id"}, Window: "24h", Limit: limitOf(4)},
	}}, sendgate.CategorySpec{})
	w := &world{}
	gate := sendgate.NewGate(sendgate.Options{
		Catalog: catalog, Overlay: w, Records: w, Caps: w, Observer: &watcher{}, Now: func() time.Time { return noon },
		Limits: fixedLimits{
			"[campaign_id] [c7]":             {{Window: sendgate.Duration(24 * time.Hour), Limit: 3}, {Window: sendgate.Duration(7 * 24 * time.Hour), Limit: 10}},
			"[campaign_id sender_id] [c7 s]": {{Window: sendgate.Duration(24 * time.Hour), Limit: 1}},
		},
	})
	check := ask("ads")
	check.CampaignID = "c7"
	for _, c := range []struct{ campaign, sender, want string }{
		{"c6", "", `rolling of  "u" 24h by c6 4/4`},
		{"c7", "", `rolling of  "u" 24h by c7 3/3 rolling of  "u" 7d by c7 10/10`},
		{"c7", "s", `rolling of  "u" 24h by s,c7 1/1 rolling of  "u" 24h by c7 3/3 rolling of  "u" 7d by c7 10/10`},
	} {
		check.CampaignID, check.SenderID = c.campaign, c.sender
		if _, err := gate.Decide(t.Context(), check); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"u push hold 0s: " + c.want}, asked(w)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A cap that is a contract closes where it cannot be judged, whatever its
// category does; one that is a courtesy opens.
func TestACapThatCannotBeJudged(t *testing.T) {
	by := func(fields ...sendgate.Field) []sendgate.Field { return fields }
	for _, c := range []struct {
		topic string
		caps  []string // what each does: nothing is what the category does
		want  string
		open  int
	}{
		{"ads", []string{""}, "suppress unverifiable caps degraded retry 30T12:00:05.000", 0},
		{"ads", []string{"allow"}, "allow unverified caps degraded", 1},
		{"ads", []string{"allow", ""}, "suppress unverifiable caps degraded retry 30T12:00:05.000", 0},
		{"orders", []string{"", ""}, "allow unverified caps degraded", 2},
		{"orders", []string{"", "suppress"}, "suppress unverifiable caps degraded retry 30T12:00:05.000", 0},
	} {
		var spec sendgate.CategorySpec
		for i, policy := range c.caps {
			spec.Caps = append(spec.Caps, sendgate.CapSpec{By: by([]sendgate.Field{"category", "channel"}[i]), Window: "24h", Limit: limitOf(5), OnUnverifiable: policy})
		}
		w := &world{capsErr: errors.New("down")}
		gate, _ := newGate(w, capCatalog(t, spec, spec), noon)
		d, err := gate.Decide(t.Context(), ask(c.topic))
		if err != nil {
			t.Fatal(err)
		}
		if summary(d) != c.want || len(d.Uncapped) != c.open {
			t.Errorf("%s %q: %s, %d uncapped; want %s, %d", c.topic, c.caps, summary(d), len(d.Uncapped), c.want, c.open)
		}
	}
}

// A cap that could be judged and is full denies, whatever of the others; where all
// that could be have room, only those that could not decide.
func TestSomeCapsCannotBeJudged(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	spec := func(hourly, daily string) sendgate.CategorySpec {
		return sendgate.CategorySpec{Caps: []sendgate.CapSpec{
			{By: []sendgate.Field{}, Window: "1h", Limit: limitOf(5), OnUnverifiable: hourly},
			{By: []sendgate.Field{"channel"}, Window: "24h", Limit: limitOf(5), OnUnverifiable: daily},
		}}
	}
	for _, c := range []struct {
		name          string
		hourly, daily string
		world         world
		want          string
		judged, open  int
	}{
		{"the other is full", "allow", "allow", world{unjudged: map[time.Duration]bool{day: true}, full: map[time.Duration]time.Time{hour: noon.Add(time.Hour)}}, "suppress frequency_cap caps retry 30T13:00:00.000", 1, 0},
		{"it may be passed", "suppress", "allow", world{unjudged: map[time.Duration]bool{day: true}}, "allow unverified caps degraded", 1, 1},
		{"it may not be passed", "allow", "suppress", world{unjudged: map[time.Duration]bool{day: true}}, "suppress unverifiable caps degraded retry 30T12:00:05.000", 1, 0},
		{"neither", "allow", "allow", world{unjudged: map[time.Duration]bool{hour: true, day: true}}, "allow unverified caps degraded", 0, 2},
	} {
		gate, _ := newGate(&c.world, capCatalog(t, spec(c.hourly, c.daily), sendgate.CategorySpec{}), noon)
		d, err := gate.Decide(t.Context(), ask("ads"))
		if err != nil {
			t.Fatal(err)
		}
		if summary(d) != c.want || len(d.Caps) != c.judged || len(d.Uncapped) != c.open {
			t.Errorf("%s: %s, %d judged and %d uncapped; want %s, %d and %d", c.name, summary(d), len(d.Caps), len(d.Uncapped), c.want, c.judged, c.open)
		}
		for _, b := range d.Uncapped {
			if b.Window == day && (len(b.Values) != 1 || b.Values[0] != "push") {
				t.Errorf("%s: the uncapped cap is of %q", c.name, b.Values)
			}
		}
	}
}

// Of a list of one user the first so many that may go are allowed, whether caps
// apply to them or not, over the parts that a long list is judged in.
func TestTakingTheFirst(t *testing.T) {
	capped := sendgate.CategorySpec{Caps: []sendgate.CapSpec{{By: []sendgate.Field{}, Window: "24h", Limit: limitOf(5)}}}
	verdicts := func(w *world, take int, topics ...string) string {
		var transactional sendgate.CategorySpec
		if w.cacheDown {
			transactional = capped
		}
		gate, _ := newGate(w, capCatalog(t, capped, transactional), noon)
		var checks []sendgate.Check
		for i, topic := range topics {
			check := ask(topic)
			check.NotificationID = fmt.Sprint("n", i)
			checks = append(checks, check)
		}
		var got []string
		for _, r := range gate.DecideAll(t.Context(), checks, sendgate.Reserve, take) {
			got = append(got, map[sendgate.Reason]string{
				sendgate.ReasonNotTaken: "-", sendgate.ReasonUnverifiable: "?", sendgate.ReasonUnverified: "Y", sendgate.ReasonOptedOut: "n",
			}[r.Decision.Reason])
			if r.Decision.Verdict == sendgate.Allow && r.Decision.Reason != sendgate.ReasonUnverified {
				got[len(got)-1] = "y"
			}
		}
		return strings.Join(got, "")
	}
	out := map[sendgate.UserID]*sendgate.Preferences{"u": {Settings: settings("orders", false)}}
	for _, c := range []struct {
		name  string
		world *world
		take  int
		list  []string
		want  string
	}{
		{"caps and none", &world{}, 2, []string{"ads", "orders", "ads", "orders"}, "yy--"},
		{"essential", &world{}, 2, []string{"alarms", "ads", "alarms", "ads"}, "yy--"},
		{"opted out", &world{records: out}, 1, []string{"orders", "ads", "ads"}, "ny-"},
		{"caps that cannot be judged", &world{capsErr: errors.New("down")}, 1, []string{"ads", "alarms", "alarms"}, "?y-"},
		{"caps beside records that cannot be read", &world{cacheDown: true, storeUp: true}, 1, []string{"orders", "orders", "alarms"}, "Y--"},
		{"the same, and one that is not capped first", &world{cacheDown: true, storeUp: true}, 2, []string{"alarms", "ads", "orders", "orders"}, "y?Y-"},
	} {
		if got := verdicts(c.world, c.take, c.list...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	long := verdicts(&world{}, 3, slices.Repeat([]string{"orders"}, 250)...)
	if long != "yyy"+strings.Repeat("-", 247) {
		t.Errorf("a long list: %s", long)
	}
}

func TestOutcomesNameTheCapsOfTheirFields(t *testing.T) {
	w := &world{}
	catalog := capCatalog(t, sendgate.CategorySpec{Caps: []sendgate.CapSpec{{By: []sendgate.Field{"campaign_id"}, Window: "24h", Limit: limitOf(5)}}}, sendgate.CategorySpec{})
	gate, watch := newGate(w, catalog, noon)
	named := ask("ads")
	named.CampaignID = "c"
	bare := sendgate.Check{NotificationID: "n", User: "u"}
	settled := gate.Settle(t.Context(), []sendgate.Outcome{
		{Check: named, Fate: sendgate.Delivered, At: noon},
		{Check: named, Fate: sendgate.Failed},
		{Check: ask("alarms"), Fate: sendgate.Delivered},
		{Check: bare, Fate: sendgate.Dropped},
		{Check: sendgate.Check{NotificationID: "n", User: "u", CampaignID: "c"}},
		{Check: sendgate.Check{}},
	})
	var got []string
	for _, s := range settled {
		got = append(got, fmt.Sprint(s.Err == nil, " ", len(s.Caps)))
	}
	if diff := cmp.Diff([]string{"true 1", "true 0", "true 0", "true 0", "false 0", "false 0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(w.reports) != 4 || !w.reports[0].At.Equal(noon) || w.reports[0].Caps[0].Values[0] != "c" || watch.settled != 4 {
		t.Errorf("%d were settled: %+v", watch.settled, w.reports)
	}
}

// Of reports that are taken together the records are read in one go, and only
// those that matter.
func TestOutcomesOfCapsThatGoByTheRecord(t *testing.T) {
	monthly := sendgate.CategorySpec{Caps: []sendgate.CapSpec{{By: []sendgate.Field{}, Kind: "calendar", Window: "month", Limit: limitOf(5)}}}
	rolling := sendgate.CategorySpec{Caps: []sendgate.CapSpec{{By: []sendgate.Field{}, Window: "24h", Limit: limitOf(5)}}}
	w := &world{records: map[sendgate.UserID]*sendgate.Preferences{"u": {QuietHours: nightIn("Asia/Tokyo")}}}
	gate, _ := newGate(w, capCatalog(t, monthly, rolling), noon)
	var outcomes []sendgate.Outcome
	for i := range 30 {
		o := sendgate.Outcome{Check: ask([]string{"ads", "orders", "alarms"}[i%3]), Fate: sendgate.Delivered}
		o.Check.NotificationID = fmt.Sprint("n", i)
		outcomes = append(outcomes, o)
	}
	settled := gate.Settle(t.Context(), outcomes)
	if w.reads != 1 || len(w.reports) != 30 || settled[0].Caps[0].Zone.Name() != "Asia/Tokyo" {
		t.Errorf("%d reads, %d reports, %+v", w.reads, len(w.reports), settled[0])
	}
	w.cacheDown, w.reports = true, nil
	for i, s := range gate.Settle(t.Context(), outcomes) {
		var e *sendgate.Error
		if failed := errors.As(s.Err, &e) && e.Code == sendgate.CodeStoreUnavailable; failed != (i%3 == 0) {
			t.Errorf("%s: %v", outcomes[i].Check.Topic, s.Err)
		}
	}
	if len(w.reports) != 20 {
		t.Errorf("%d reports got through", len(w.reports))
	}
}

// A user's own limit stands before one of a value, and no limit that is lower
// than the catalog's is kept as a whole.
func TestAUsersOwnLimitStands(t *testing.T) {
	capped := sendgate.CategorySpec{
		UserCaps: &sendgate.UserCapsSpec{Ceiling: limitOf(20)},
		Caps:     []sendgate.CapSpec{{By: []sendgate.Field{"category"}, Window: "24h", Limit: limitOf(5), Keep: &sendgate.KeepSpec{Slots: 2, For: "high"}}},
	}
	daily := sendgate.Duration(24 * time.Hour)
	for _, c := range []struct {
		name  string
		user  []sendgate.UserCap
		value int
		want  string // room and limit
	}{
		{"the catalog's", nil, 5, "3/5"},
		{"a value's", nil, 1, "1/1"},
		{"a user's beside it", []sendgate.UserCap{{Category: "m", MaxCount: 2, Window: daily}}, 9, "1/2"},
		{"none", []sendgate.UserCap{{Category: "m", MaxCount: 0, Window: daily}}, 9, "0/0"},
	} {
		w := &world{records: map[sendgate.UserID]*sendgate.Preferences{"u": {Caps: c.user}}}
		gate := sendgate.NewGate(sendgate.Options{
			Catalog: capCatalog(t, capped, sendgate.CategorySpec{}), Overlay: w, Records: w, Caps: w, Observer: &watcher{}, Now: func() time.Time { return noon },
			Limits: fixedLimits{"[category] [m]": {{Window: daily, Limit: c.value}}},
		})
		if _, err := gate.Decide(t.Context(), ask("ads")); err != nil {
			t.Fatal(err)
		}
		if got := asked(w)[0]; !strings.HasSuffix(got, " "+c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
