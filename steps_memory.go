package sendgate

import "context"

// The steps that look at what is known in process: to the overlay, and where
// that does not know a user, to the filter.

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
			r.endEssential(c, c.consent.Hard)
		case c.category.Essential:
			if f := r.lookHard(c); !f.Current || f.Hold {
				verify = append(verify, c)
			} else {
				r.endEssential(c, false)
			}
		case c.known && c.exact && c.consent.Global:
			c.findKnown("a hold stands")
			c.end(Suppress, ReasonGlobalUnsubscribe)
		case c.known && c.exact:
			c.findKnown("no hold stands")
		case c.known:
			c.findHint()
		default:
			r.globalByFilter(c)
		}
	}
	r.read(ctx, verify)
	for _, c := range verify {
		if c.record != nil {
			r.endEssential(c, c.record.Hard())
		} else if _, hard := c.saysNo(); !hard {
			c.decision.Degraded = true
			r.endEssential(c, false)
		}
	}
}

func (r *round) endEssential(c *checkCase, hard bool) {
	if hard {
		c.find("a hard hold stands: nothing may be sent")
		c.end(Suppress, ReasonGlobalUnsubscribe)
		return
	}
	c.find("no hard hold is known, and the category is essential")
	if c.reason = ReasonEssential; !r.taking { // otherwise it has to be counted yet
		c.end(Allow, ReasonEssential)
	}
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
			c.findHint()
		case no:
			c.judged = true
			c.findKnown(reason.String())
			c.end(Suppress, reason)
		default:
			c.judged = true
			c.findKnown("no opt-out")
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
