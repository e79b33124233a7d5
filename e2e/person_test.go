package e2e_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/oracle"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/quiet"
)

// person is one user as made up: the source of both what the store is loaded
// with and what the oracle is told.
type person struct {
	id       string
	revision int64
	settings map[sendgate.Setting]bool
	quiet    *oracle.Quiet
	caps     []oracle.UserCap
	holds    []oracle.Hold
}

var (
	channels  = catalog().Channels
	marketing = topicsOf("marketing")
	paid      = topicsOf("transactional")
	homes     = []string{
		"UTC", "America/New_York", "US/Eastern", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns",
		"Pacific/Chatham", "America/Santiago", "Pacific/Kiritimati", "Africa/Casablanca", "America/Los_Angeles",
	}
	idForms = []string{"u_%d", "u_%d", "u_%d", "a+%d@x.io", "a b %d", "a/b:%d", "{%d}", "ÜSER %d"}
)

// anybody makes a person up. Quiet hours, where there are any, begin and end
// more than an hour from now, so that no verdict depends on the instant.
func anybody(r *rand.Rand, number int, now time.Time) *person {
	chance := func(percent int) bool { return r.IntN(100) < percent }
	p := &person{
		id: fmt.Sprintf(idForms[number%len(idForms)], number), revision: 1 + r.Int64N(40),
		settings: map[sendgate.Setting]bool{},
	}
	some := func(topics []string, most int, on bool) {
		for range 1 + r.IntN(most) {
			p.settings[sendgate.Setting{Topic: pick(r, topics), Channel: pick(r, channels)}] = on
		}
	}
	if chance(15) { // back in after they were out, or in where the default is out
		some(marketing, 6, true)
	}
	if chance(50) {
		some(marketing, 20, false)
	}
	if chance(8) {
		some(paid, 3, false)
	}
	if chance(15) {
		p.quiet = quietOf(r, pick(r, homes), now)
	}
	if chance(10) {
		p.caps = append(p.caps, oracle.UserCap{
			Category: pick(r, []string{"marketing", "social"}), Window: pick(r, []time.Duration{12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}), MaxCount: r.IntN(4),
		})
	}
	hold := func(source, reason string, hard bool) {
		p.holds = append(p.holds, oracle.Hold{Source: source, Reason: reason, RetainEssential: !hard})
	}
	if chance(1) {
		hold("operator", "operator_block", chance(30))
	}
	if chance(3) {
		hold("user", "user_requested", false)
	} else if chance(1) {
		hold("user", "account_deletion", true)
	}
	return p
}

// quietOf are quiet hours that a person is well inside or well outside of.
func quietOf(r *rand.Rand, zone string, now time.Time) *oracle.Quiet {
	local := now.In(zones.Load(zone))
	minute := local.Hour()*60 + local.Minute()
	before := 70 + r.IntN(300)
	length := before + 70 + r.IntN(300)
	if r.IntN(2) == 0 {
		length = 10 + r.IntN(before-69) // ended an hour ago at the latest
	}
	from := (minute - before + 2*24*60) % (24 * 60)
	clock := func(m int) string { return fmt.Sprintf("%02d:%02d", m/60%24, m%60) }
	return &oracle.Quiet{Enabled: r.IntN(10) > 0, Start: clock(from), End: clock(from + length), Timezone: zone}
}

// record is the person as the store has them.
func (p *person) record(now time.Time) (*prefs.Record, error) {
	r := &prefs.Record{User: sendgate.UserID(p.id), Preferences: sendgate.Preferences{Revision: p.revision, Settings: p.settings, UpdatedAt: now}}
	if q := p.quiet; q != nil {
		window, err := quiet.NewWindow(q.Start, q.End, q.Days)
		if err != nil {
			return nil, err
		}
		r.QuietHours = &sendgate.QuietHours{Enabled: q.Enabled, Window: &window, Timezone: q.Timezone}
	}
	for _, c := range p.caps {
		r.Caps = append(r.Caps, sendgate.UserCap{Category: c.Category, Window: sendgate.Duration(c.Window), MaxCount: c.MaxCount})
	}
	for _, h := range p.holds {
		r.Holds = append(r.Holds, sendgate.Hold{Source: sendgate.HoldSource(h.Source), Reason: h.Reason, RetainEssential: h.RetainEssential, At: now})
	}
	slices.SortFunc(r.Holds, func(a, b sendgate.Hold) int { return cmp.Compare(a.Source, b.Source) })
	return r, nil
}

// tell has the oracle know the person.
func (p *person) tell(o *oracle.Oracle, now time.Time) error {
	var e oracle.Edit
	for s, on := range p.settings {
		e.Preferences = append(e.Preferences, oracle.PreferenceEdit{Topic: s.Topic, Channel: s.Channel, Enabled: oracle.Some(on)})
	}
	for _, c := range p.caps {
		e.Caps = append(e.Caps, oracle.CapEdit{Category: c.Category, Window: sendgate.Duration(c.Window).String(), MaxCount: oracle.Some(c.MaxCount)})
	}
	if q := p.quiet; q != nil {
		e.Quiet = &oracle.QuietEdit{Enabled: &q.Enabled, Start: &q.Start, End: &q.End, Timezone: &q.Timezone}
	}
	if refusal := o.Edit(p.id, e, now); refusal != nil {
		return fmt.Errorf("the oracle refuses %+v: %v", p, refusal.Codes)
	}
	for _, h := range p.holds {
		_, refusal := o.Unsubscribe(oracle.Unsubscribe{User: p.id, Reason: h.Reason, RetainEssential: &h.RetainEssential, Source: h.Source}, now)
		if refusal != nil {
			return fmt.Errorf("the oracle refuses %+v: %v", h, refusal.Codes)
		}
	}
	return nil
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
