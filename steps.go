package sendgate

import (
	"context"
	"errors"
	"time"

	"github.com/sendgate/sendgate/quiet"
)

var errCapsDown = errors.New("the Redis that holds the caps did not answer this check")

// global looks at the holds that are known in process: to the overlay, or else
// to the filter. For an essential check it is the only step, and hard holds are
// the only thing it looks for; what is not known for certain is read.
func (r *round) global(ctx context.Context, open []*checkCase) {
	var verify []*checkCase
	for _, c := range open {
		c.judged = true
		c.consent, c.exact, c.known = r.overlay.Consent(c.check.User)
		switch {
		case c.category.Essential && c.known && c.exact:
			c.endEssential(c.consent.Hard)
		case c.category.Essential:
			if f := r.lookHard(c); !f.Current || f.Hold {
				verify = append(verify, c)
			} else {
				c.endEssential(false)
			}
		case c.known && c.exact && c.consent.Global:
			c.find("a hold stands, known in process at revision %d", c.consent.Revision)
			c.end(Suppress, ReasonGlobalUnsubscribe)
		case c.known && c.exact:
			c.find("no hold stands, known in process at revision %d", c.consent.Revision)
		case c.known:
			c.find("known in process at revision %d, but something newer may have been missed", c.consent.Revision)
		default:
			r.globalByFilter(c)
		}
	}
	r.read(ctx, verify)
	for _, c := range verify {
		if c.record != nil {
			c.endEssential(c.record.Hard())
		} else if _, hard := c.saysNo(); !hard {
			c.decision.Degraded = true
			c.endEssential(false)
		}
	}
}

func (c *checkCase) endEssential(hard bool) {
	if hard {
		c.find("a hard hold stands: nothing may be sent")
		c.end(Suppress, ReasonGlobalUnsubscribe)
		return
	}
	c.find("no hard hold is known, and the category is essential")
	c.end(Allow, ReasonEssential)
}

// lookHard asks the filter about the hard holds of a user whom the overlay does
// not know.
func (r *round) lookHard(c *checkCase) (f FilterAnswer) {
	if !c.known {
		f = r.Gate.filter.LookHard(c.check.User)
	}
	return f
}

// globalByFilter looks at the holds of a user whom the overlay does not know.
// Only the record is certain of one that the filter finds; the category says
// whether it is asked.
func (r *round) globalByFilter(c *checkCase) {
	c.filter = r.Gate.filter.Look(c.check.User, Setting{c.check.Topic, c.check.Channel})
	switch f := c.filter; {
	case !f.Loaded:
		c.find("nothing is known in process of this user")
	case !f.Hold:
		c.find("no hold is in the filter")
	case !f.Current || c.category.FilterHit == HitVerify:
		c.find("a hold is in the filter, to be verified")
	default:
		c.find("a hold is in the filter")
		r.rejectByHit(c, ReasonGlobalUnsubscribe)
	}
}

// rejectByHit ends a check for what the filter alone says.
func (r *round) rejectByHit(c *checkCase, reason Reason) {
	if !c.ended {
		c.decision.Exact = false
	}
	if !c.ended && !c.explain {
		r.Gate.filter.Rejected(c.check.User, Setting{c.check.Topic, c.check.Channel})
	}
	c.end(Suppress, reason)
}

// filter looks at the settings that are known in process: to the overlay, which
// is certain, or else to the filter. It never allows by itself.
func (r *round) filter(_ context.Context, open []*checkCase) {
	for _, c := range open {
		reason, no := c.saysNo()
		switch {
		case c.category.Essential:
			c.find("not asked: the category is essential")
		case !c.known:
			r.settingByFilter(c)
		case !c.exact:
			c.find("known in process at revision %d, but something newer may have been missed", c.consent.Revision)
		case no:
			c.judged = true
			c.find("%s, known in process at revision %d", reason, c.consent.Revision)
			c.end(Suppress, reason)
		default:
			c.judged = true
			c.find("no opt-out, known in process at revision %d", c.consent.Revision)
		}
	}
}

// settingByFilter looks at the setting of a user whom the overlay does not
// know. Where the topic is off by default, that no opt-in is in the filter is
// certain, and so is the reason if no opt-out is either. That an opt-out is in
// it is not certain, and the category says whether the record is asked.
func (r *round) settingByFilter(c *checkCase) {
	f := c.filter
	c.judged = f.Loaded
	verify := !f.Current || c.category.FilterHit == HitVerify
	off := !c.topic.DefaultOn(c.check.Channel) && f.OptInsCovered && !f.OptedIn && f.Current
	switch {
	case !f.Loaded:
		c.find("nothing is known in process of this user")
	case f.Hold && verify:
		c.find("a hold is in the filter, to be verified")
	case off && !f.OptedOut:
		c.find("off by default, and no opt-in is in the filter")
		c.end(Suppress, ReasonDefaultOff)
	case !f.OptedOut:
		c.find("no opt-out is in the filter")
	case verify:
		c.find("an opt-out is in the filter, to be verified")
	default:
		c.find("an opt-out is in the filter")
		r.rejectByHit(c, ReasonOptedOut)
	}
}

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

// read reads the records of checks in one go, and each user's zone with them.
func (r *round) read(ctx context.Context, cases []*checkCase) {
	if len(cases) == 0 {
		return
	}
	asks := make([]RecordAsk, len(cases))
	for i, c := range cases {
		asks[i] = RecordAsk{User: c.check.User, FallBack: c.category.OnUnverifiable == UnverifiableAllow}
		if c.known {
			asks[i].AtLeast = c.consent.Revision
		}
	}
	for i, a := range r.records.Read(ctx, asks) {
		c := cases[i]
		c.decision.InProcess = c.decision.InProcess && c.ended
		c.record, c.cacheDown, c.err = a.Preferences, a.CacheDown, a.Err
		if c.record == nil || c.record.QuietHours == nil || c.record.QuietHours.Timezone == "" {
			continue
		}
		if zone, err := quiet.LoadZone(c.record.QuietHours.Timezone); err == nil {
			c.zone = zone
		} else {
			r.observer.ZoneFellBack()
		}
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
		if !c.judged || c.err != nil {
			continue
		}
		if !c.closed {
			c.decision.Caps = c.capStates
		}
		full := 0
		for _, s := range c.capStates {
			if s.Full {
				full++
			}
		}
		c.find("%d of %d caps are full", full, len(c.capStates))
		if full == 0 || c.ended {
			continue
		}
		c.end(c.category.capVerdict(), ReasonFrequencyCap)
		c.passesAt(c.at.Add(time.Millisecond))
	}
}

func (c *Category) capVerdict() Verdict {
	if c.OnCap == CapDefer {
		return Defer
	}
	return Suppress
}

// judge looks at the caps of checks that have ended, and charges those of
// others, in one go. Checks without caps are left unjudged.
func (r *round) judge(ctx context.Context, cases []*checkCase) {
	asks := make([]CapAsk, 0, len(cases))
	asked := make([]*checkCase, 0, len(cases))
	for _, c := range cases {
		bound := c.boundCaps()
		switch {
		case len(bound) == 0:
		case c.cacheDown && r.capsBesideRecords:
			c.judged, c.err = true, errCapsDown
		default:
			c.judged = true
			asks = append(asks, CapAsk{User: c.check.User, NotificationID: c.check.NotificationID, Look: !r.reserve || c.ended, Caps: bound})
			asked = append(asked, c)
		}
	}
	if len(asks) == 0 {
		return
	}
	for i, a := range r.Gate.caps.Judge(ctx, asks) {
		if asked[i].err = a.Err; a.Err == nil {
			asked[i].learn(a)
		}
	}
}
