package sendgate

import (
	"fmt"
	"time"

	"github.com/sendgate/sendgate/quiet"
)

// checkCase is the state of one check on its way through the pipeline.
type checkCase struct {
	check    *Check
	topic    *Topic
	category *Category
	at       time.Time // the instant that quiet hours are judged at

	// What was learned on the way.
	consent      Consent // from the overlay, where known
	exact, known bool
	filter       FilterAnswer // where the overlay knows nothing
	record       *Preferences // nil until read, and where it could not be
	presumed     Remembered   // what the record is taken from, where it was not read
	proved       bool         // the record was found to be as presumed
	again        bool         // presumes nothing
	cacheDown    bool
	zone         *quiet.Zone
	reason       Reason     // why an allow would be one
	bound        []BoundCap // the caps that apply
	unjudged     []BoundCap // of these, those that could not be judged
	capStates    []CapState // of the others, once they were looked at
	capsReady    time.Time  // first instant at which all caps have room, as far as is known; zero is now
	capsNever    bool       // no such instant
	waiting      bool       // ended by quiet hours; a look at its caps dates it
	passed       bool       // its caps had room, and others were taken before it

	// Where it stands.
	decision Decision
	ended    bool
	closed   bool  // ended in an earlier step; what follows only explains
	judged   bool  // the running step had something to judge
	err      error // why the running step cannot tell

	explain  bool
	finding  string
	findings []Finding
}

func (c *checkCase) open(check *Check, catalog *Catalog, at time.Time) {
	topic, _ := catalog.Topic(check.Topic)
	c.check, c.topic, c.category, c.at = check, topic, topic.Category, at
	c.zone = catalog.DefaultZone()
	c.decision = Decision{NotificationID: check.NotificationID, User: check.User, Category: topic.Category.Name, Exact: true, InProcess: true}
}

// end gives the verdict. The first one stands.
func (c *checkCase) end(v Verdict, reason Reason) {
	if c.ended {
		return
	}
	c.ended = true
	c.decision.Verdict, c.decision.Reason = v, reason
}

// close turns a check that no step has stopped into an allow.
func (c *checkCase) close() { c.end(Allow, c.reason) }

// find notes what the running step found, for a trace. Numbers among the
// arguments are allocated whether they are noted or not.
func (c *checkCase) find(format string, args ...any) {
	if c.explain {
		c.finding = fmt.Sprintf(format, args...)
	}
}

// findKnown is find for what the overlay knows for certain.
func (c *checkCase) findKnown(what string) {
	if c.explain {
		c.find("%s, known in process at revision %d", what, c.consent.Revision)
	}
}

// findHint is find where the overlay has a hint only.
func (c *checkCase) findHint() {
	if c.explain {
		c.find("known in process at revision %d, but something newer may have been missed", c.consent.Revision)
	}
}

// ruling is what the user's own choice and the catalog's default say.
func (c *checkCase) ruling(settings Settings) (reason Reason, on bool) {
	switch on, set := settings[Setting{c.check.Topic, c.check.Channel}]; {
	case set && on:
		return ReasonOptedIn, true
	case set:
		return ReasonOptedOut, false
	case c.topic.DefaultOn(c.check.Channel):
		return ReasonDefaultOn, true
	default:
		return ReasonDefaultOff, false
	}
}

// saysNo tells whether what is known in process, exact or not, is a no.
func (c *checkCase) saysNo() (Reason, bool) {
	switch {
	case !c.known:
		return 0, false
	case c.category.Essential:
		return ReasonGlobalUnsubscribe, c.consent.Hard
	case c.consent.Global:
		return ReasonGlobalUnsubscribe, true
	}
	reason, on := c.ruling(c.consent.Settings)
	return reason, !on
}

// filterSaysNo tells whether the filter has a no that could not be verified.
func (c *checkCase) filterSaysNo() (Reason, bool) {
	switch f := c.filter; {
	case !f.Loaded || c.category.Essential:
		return 0, false
	case f.Hold:
		return ReasonGlobalUnsubscribe, true
	case f.OptedOut:
		return ReasonOptedOut, true
	default:
		off := !c.topic.DefaultOn(c.check.Channel)
		return ReasonDefaultOff, off && f.OptInsCovered && !f.OptedIn
	}
}

// hours are the quiet hours that the check has to obey: the user's, as far as
// they are known, and the operator's.
func (c *checkCase) hours() (h quiet.Hours) {
	if c.category.InQuietHours == QuietIgnore {
		return h
	}
	h.Allowed = c.category.Allowed(c.check.Channel)
	if c.record == nil {
		return h
	}
	if q := c.record.QuietHours; q != nil && q.Enabled && q.Window != nil {
		h.Quiet = []quiet.Window{*q.Window}
	}
	return h
}

// learn keeps what a look at the caps has shown. Where one that could be judged is
// full, the others do not matter.
func (c *checkCase) learn(a CapAnswer) {
	c.unjudged = nil
	if a.Err != nil {
		c.sort(&a)
	}
	c.capStates, c.passed, c.decision.CapsAt, c.decision.Hold = a.Caps, a.Passed, a.At, c.category.Hold
	full := false
	for i, s := range a.Caps {
		if s.Cap.Kind == CapCalendar {
			a.Caps[i].Zone = c.zone.Name()
		}
		full = full || s.Full
		switch {
		case !s.Full:
		case s.ResetsAt.IsZero():
			c.capsNever = true
		case s.ResetsAt.After(c.capsReady):
			c.capsReady = s.ResetsAt
		}
	}
	if len(c.unjudged) > 0 && !full {
		c.err = a.Err
	}
}

// sort takes the caps that could not be judged out of an answer.
func (c *checkCase) sort(a *CapAnswer) {
	if len(a.Caps) == 0 {
		c.unjudged = c.bound
		return
	}
	judged := make([]CapState, 0, len(a.Caps))
	for i, s := range a.Caps {
		if s.Unjudged {
			c.unjudged = append(c.unjudged, c.bound[i])
		} else {
			judged = append(judged, s)
		}
	}
	a.Caps = judged
}

// passesAt dates a defer or a suppress: the first instant, not before the
// given one, at which quiet hours and caps would both let the check through.
// Full caps only empty as time passes, and a slot that the check holds already
// lapses once, so that one look at the caps is enough.
func (c *checkCase) passesAt(earliest time.Time) {
	if c.capsNever {
		return
	}
	if c.capsReady.After(earliest) {
		earliest = c.capsReady
	}
	hours := c.hours()
	at, ok := hours.NextOpen(earliest, c.zone)
	for ok {
		returns, lapsed := c.lapsed(at)
		if !lapsed {
			break
		}
		if returns.IsZero() {
			return
		}
		at, ok = hours.NextOpen(returns, c.zone)
	}
	switch {
	case !ok:
	case c.decision.Verdict == Defer:
		c.decision.DeliverAt = at
	case c.decision.Verdict == Suppress:
		c.decision.RetryAt = at
	}
}

// lapsed tells whether, at an instant, a slot that the check holds will have
// lapsed and not be free again, and when it will be.
func (c *checkCase) lapsed(at time.Time) (returns time.Time, lapsed bool) {
	for _, s := range c.capStates {
		if !s.LapsesAt.IsZero() && !at.Before(s.LapsesAt) && (s.ReturnsAt.IsZero() || at.Before(s.ReturnsAt)) {
			return s.ReturnsAt, true
		}
	}
	return time.Time{}, false
}
