package replay

import (
	"slices"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog"
)

// report is an outcome as a counter is told of it.
type report struct {
	id        id
	channel   string // empty: every channel
	delivered bool
	happened  int64            // as it was reported, and otherwise when the report came
	dated     bool             // it was reported
	named     *decisionlog.Cap // the counter's, if the report names it
}

func reportOf(e *decisionlog.Entry) report {
	r := report{
		id: idOf(e), channel: e.Channel, delivered: e.Outcome == sendgate.Delivered.String(), happened: e.At,
	}
	if e.Happened > 0 {
		r.happened, r.dated = min(e.Happened, e.At), true
	}
	return r
}

// covers tells whether a use began before what a failure is told of. One that
// bears no date is of all that has begun, whose clock may be another.
func (r *report) covers(u *use) bool { return !r.dated || u.at <= r.happened }

func (r *report) concerns(u *use) bool { return r.channel == "" || r.channel == u.channel }

// settle takes a report.
func (c *counter) settle(r *report, now int64) {
	if r.named != nil {
		c.turn(r.named.Zone, now)
	}
	if r.delivered {
		c.deliver(r, now)
	} else {
		c.giveBack(r)
	}
}

// deliver marks what was delivered, so that it is neither given back nor dropped.
// A delivery whose slot is free again, or which never had one and names the cap,
// counts at the moment at which it happened.
func (c *counter) deliver(r *report, now int64) {
	s := c.known[r.id]
	found := false
	if s != nil {
		for _, u := range s.uses() {
			if r.concerns(u) {
				u.delivered, u.lapses, found = true, 0, true
			}
		}
	}
	if found {
		return
	}
	own := use{channel: r.channel, at: r.happened, delivered: true}
	place, noted := c.noteOf(r.id, r.channel, now)
	if noted {
		own.channel = c.notes[r.id][place].channel
	}
	switch {
	case noted && s != nil: // another channel has the slot
		c.unnote(r.id, place)
		own.at = now
		s.shares = append(s.shares, own)
	case s != nil || !noted && r.named == nil || !c.counts(r.happened, now):
	default:
		if noted {
			c.unnote(r.id, place)
		}
		limit := c.latest.Limit
		if c.used(now) >= limit {
			c.row.Overshoot++
		}
		c.row.Slots++
		c.put(&slot{use: own, id: r.id}, now, limit)
	}
}

// giveBack takes a notification that was not delivered off its slot.
func (c *counter) giveBack(r *report) {
	s := c.known[r.id]
	if s == nil {
		return
	}
	s.shares = slices.DeleteFunc(s.shares, func(u use) bool {
		back := r.concerns(&u) && !u.delivered && r.covers(&u)
		if back {
			c.note(r.id, u)
		}
		return back
	})
	if r.concerns(&s.use) && !s.delivered && r.covers(&s.use) {
		if c.release(s) {
			c.row.Returned++
		}
	}
}

func (c *counter) unnote(of id, place int) {
	if c.notes[of] = slices.Delete(c.notes[of], place, place+1); len(c.notes[of]) == 0 {
		delete(c.notes, of)
	}
}

// counts tells whether what happened at some time counts now.
func (c *counter) counts(at, now int64) bool {
	switch c.kind {
	case sendgate.CapBuckets:
		return at/c.width >= now/c.width-c.window/c.width
	case sendgate.CapCalendar:
		return at >= c.calendar.since && c.calendar.ends > now
	default:
		return at > now-c.window
	}
}

// uses are all of a slot.
func (s *slot) uses() []*use {
	all := []*use{&s.use}
	for i := range s.shares {
		all = append(all, &s.shares[i])
	}
	return all
}
