package sendgate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sendgate/sendgate/quiet"
)

var errCapsDown = errors.New("the Redis that holds the caps did not answer this check")

// preference reads the exact records and asks them.
func (r *round) preference(ctx context.Context, open []*checkCase) {
	ask := make([]*checkCase, 0, len(open))
	for _, c := range open {
		if c.category.Essential {
			c.find("not asked: the category is essential")
			continue
		}
		ask = append(ask, c)
	}
	r.read(ctx, ask)
	for _, c := range ask {
		if c.record == nil {
			continue
		}
		c.judged = true
		reason, on := c.ruling(c.record.Settings)
		switch {
		case c.record.Global():
			c.find("a hold stands at revision %d: %s by the %s", c.record.Revision, c.record.Holds[0].Reason, c.record.Holds[0].Source)
			c.end(Suppress, ReasonGlobalUnsubscribe)
		case on:
			c.find("%s at revision %d", reason, c.record.Revision)
			c.reason = reason
		default:
			c.find("%s at revision %d", reason, c.record.Revision)
			c.end(Suppress, reason)
		}
	}
}

// read reads the records of checks in one go, and each user's zone with them. What
// a check may presume is not read.
func (r *round) read(ctx context.Context, cases []*checkCase) {
	if cases = r.presume(cases); len(cases) == 0 {
		return
	}
	asks := make([]RecordAsk, len(cases))
	for i, c := range cases {
		asks[i] = RecordAsk{User: c.check.User, AtLeast: c.atLeast(), FallBack: c.category.OnUnverifiable == UnverifiableAllow}
	}
	for i, a := range r.records.Read(ctx, asks) {
		c := cases[i]
		c.cacheDown, c.err = a.CacheDown, a.Err
		r.adopt(c, a.Preferences)
	}
}

// adopt has a check go by preferences, if there are any, and by the user's zone.
func (r *round) adopt(c *checkCase, p *Preferences) {
	c.decision.InProcess = c.decision.InProcess && c.ended
	c.record = p
	if p == nil || p.QuietHours == nil || p.QuietHours.Timezone == "" {
		return
	}
	if zone, err := quiet.LoadZone(p.QuietHours.Timezone); err == nil {
		c.zone = zone
	} else {
		r.observer.ZoneFellBack()
	}
}

// quietHours holds the local clock against the user's windows and the
// operator's. A check that must wait is dated by the next step, which sees its
// caps.
func (r *round) quietHours(_ context.Context, open []*checkCase) {
	for _, c := range open {
		h := c.hours()
		if len(h.Quiet)+len(h.Allowed) == 0 {
			c.find("no quiet hours apply")
			continue
		}
		c.judged = true
		until, ok := h.NextOpen(c.at, c.zone)
		switch {
		case !ok:
			c.find("nothing opens within %d days in %s", int(quiet.Horizon.Hours()/24), c.zone.Name())
			c.end(Suppress, ReasonQuietHours)
		case !until.After(c.at):
			c.find("outside quiet hours in %s", c.zone.Name())
		default:
			c.find("inside quiet hours in %s until %s", c.zone.Name(), until.UTC().Format(time.RFC3339))
			c.waiting = !c.ended
			c.end(c.category.quietVerdict(), ReasonQuietHours)
		}
	}
}

func (c *Category) quietVerdict() Verdict {
	if c.InQuietHours == QuietSuppress {
		return Suppress
	}
	return Defer
}

// caps asks for a slot under every cap of every check, in order. Checks that
// wait for quiet hours to end only look, in their place: without an answer they
// are dated as far as is known.
func (r *round) caps(ctx context.Context, open []*checkCase) {
	r.judge(ctx, open)
	for _, c := range open {
		if c.waiting {
			c.passesAt(c.at)
		}
		if !c.judged {
			c.find("no caps apply")
		}
		if !c.judged {
			continue
		}
		if !c.closed {
			c.decision.Caps = c.capStates
		}
		if c.err != nil {
			continue
		}
		full := 0
		for _, s := range c.capStates {
			if s.Full {
				full++
			}
		}
		c.find("%d of %d caps are full", full, len(c.capStates))
		switch {
		case c.ended:
		case full > 0:
			c.end(c.category.capVerdict(), ReasonFrequencyCap)
			c.passesAt(c.at.Add(time.Millisecond))
		case c.passed:
			c.end(Suppress, ReasonNotTaken)
		}
	}
}

func (c *Category) capVerdict() Verdict {
	if c.OnCap == CapDefer {
		return Defer
	}
	return Suppress
}

// judge looks at the caps of checks that have ended, and charges those of
// others, in one go. Checks without caps are left unjudged, unless only so many
// checks are to be taken.
func (r *round) judge(ctx context.Context, cases []*checkCase) {
	for _, c := range cases {
		c.bound = r.boundCaps(c)
		c.judged = len(c.bound) > 0 || r.taking && !c.ended
	}
	// Where only so many are taken all are of one user, and one Redis.
	allDown := r.taking && slices.ContainsFunc(cases, r.capsDown)
	asks := make([]CapAsk, 0, len(cases))
	full := r.taking && r.take == 0 // with checks of an earlier part of the list
	for _, c := range cases {
		if c.judged && !allDown && !r.capsDown(c) {
			asks = append(asks, CapAsk{
				User: c.check.User, NotificationID: c.check.NotificationID, Channel: c.check.Channel,
				Look: !r.reserve || c.ended || full, Hold: c.category.Hold, Caps: c.bound, Presumed: c.presumed.Value,
			})
		}
	}
	var answers []CapAnswer
	if len(asks) > 0 {
		answers = r.Gate.caps.Judge(ctx, asks, r.take)
	}
	for _, c := range cases {
		if !c.judged {
			continue
		}
		a := CapAnswer{Err: errCapsDown}
		if !allDown && !r.capsDown(c) {
			a, answers = answers[0], answers[1:]
		}
		r.prove(c, &a)
		c.learn(a)
		if r.taking && !c.ended {
			r.count(c, a.Admitted)
		}
	}
}

// capsDown tells whether the caps of a check are where its record could not be
// read.
func (r *round) capsDown(c *checkCase) bool {
	return r.capsBesideRecords && c.cacheDown && len(c.bound) > 0
}

// count counts a check that may go, where only so many are to be taken. One that
// goes although nobody could tell counts as well.
func (r *round) count(c *checkCase, admitted bool) {
	goes := admitted || len(c.bound) == 0 || c.err != nil && c.unverifiable(StepCaps) == UnverifiableAllow
	switch {
	case !goes || c.passed:
	case r.take > 0:
		r.take--
	default:
		c.passed, c.err = true, nil
	}
}

// boundCaps are the caps that apply to a check. A cap that is keyed by a field
// which the check does not carry does not apply, nor does one whose subject it
// does not name.
func (r *round) boundCaps(c *checkCase) []BoundCap {
	if c.category.Essential {
		return nil
	}
	var users []UserCap
	if c.record != nil {
		users = c.record.Caps
	}
	caps := c.category.CapsFor(r.valueLimits(c, c.category.Caps), users)
	bound := make([]BoundCap, 0, len(caps))
next:
	for _, own := range caps {
		b := BoundCap{Cap: own, SubjectID: string(c.check.User), Values: make([]string, len(own.By)), Room: own.Room(c.check.Priority), Zone: c.zone}
		if own.Subject != "" {
			if b.SubjectID = c.check.value(own.Subject, ""); b.SubjectID == "" {
				continue
			}
		}
		for i, f := range own.By {
			if b.Values[i] = c.check.value(f, c.category.Name); b.Values[i] == "" {
				continue next
			}
		}
		bound = append(bound, b)
	}
	return bound
}

// valueLimits gives caps the limits that the check's own values have.
func (r *round) valueLimits(c *checkCase, caps []Cap) []Cap {
	if len(c.category.keyedBy) == 0 || r.limits.None() {
		return caps
	}
	var room [8]string // for values, of one set of fields after the other
	for _, by := range c.category.keyedBy {
		values := room[:0]
		for _, f := range by {
			values = append(values, c.check.value(f, c.category.Name))
		}
		for _, limit := range r.limits.Of(by, values) {
			caps = c.category.withLimit(caps, by, time.Duration(limit.Window), limit.Limit)
		}
	}
	return caps
}
