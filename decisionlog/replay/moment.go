package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog"
)

// moment is what happened to a counter within one millisecond. The logs do not
// tell in what order; the one that suits the verdicts is taken.
type moment struct {
	at      int64
	takes   []event // allows
	denials []event
	reports []report
}

// at is the moment of a counter that an event belongs to. What happened before
// it is settled first.
func (c *counter) at(at int64) *moment {
	if at > c.moment.at {
		c.settleMoment()
		c.moment.at = at
	}
	return &c.moment
}

// settleMoment judges what happened in the moment, and empties it. As many
// notifications as have room take their slots, denials are judged whenever the
// counter is as full as it gets, and then one report after the other is taken.
func (c *counter) settleMoment() {
	m := c.moment
	c.moment = moment{at: m.at}
	if len(m.takes)+len(m.denials)+len(m.reports) == 0 {
		return
	}
	c.pass(m.at)
	slices.SortStableFunc(m.takes, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.cap.Room(), b.cap.Room()), cmp.Compare(m.leaves(b), m.leaves(a)))
	})
	for {
		m.takes = slices.DeleteFunc(m.takes, func(e event) bool { return c.fits(e) && c.take(e) })
		m.denials = slices.DeleteFunc(m.denials, func(e event) bool { return !c.fits(e) })
		switch {
		case len(m.reports) > 0:
			c.settle(&m.reports[0], m.at)
			m.reports = m.reports[1:]
		case len(m.takes) > 0:
			e := m.takes[0]
			c.row.Over++
			c.replay.o.Found(c.finding(e, true))
			c.take(e)
			m.takes = m.takes[1:]
		default:
			c.denied(m.denials)
			return
		}
	}
}

// leaves is 1 for a notification that is given back within the moment.
func (m *moment) leaves(e event) int {
	for i := range m.reports {
		if r := &m.reports[i]; !r.delivered && r.id == idOf(e.entry) {
			return 1
		}
	}
	return 0
}

// denied judges denials for which there was room at every time of the moment.
func (c *counter) denied(wrongly []event) {
	for _, e := range wrongly {
		if !c.told(e.at) {
			c.row.Unknown++
			continue
		}
		c.row.Under++
		c.replay.o.Found(c.finding(e, false))
	}
}

// told tells whether the logs tell of all that counts at an instant.
func (c *counter) told(at int64) bool {
	from := at - c.window - c.width
	if c.kind == sendgate.CapCalendar {
		from = c.calendar.since
	}
	return c.replay.o.Complete || from >= c.replay.first
}

// fits tells whether there is room for a notification, or it has its slot.
func (c *counter) fits(e event) bool {
	c.turn(e.cap.Zone, e.at)
	return c.known[idOf(e.entry)] != nil || c.used(e.at) < e.cap.Room()
}

// take gives a notification its slot, if it has none.
func (c *counter) take(e event) bool {
	own := use{channel: e.entry.Channel, at: e.at}
	if e.entry.Hold > 0 {
		own.lapses = e.at + time.Duration(e.entry.Hold).Milliseconds()
	}
	s := c.known[idOf(e.entry)]
	if s == nil {
		c.row.Slots++
		c.put(&slot{use: own, id: idOf(e.entry)}, e.at, e.cap.Limit)
	} else if s.channel != own.channel && !slices.ContainsFunc(s.shares, func(u use) bool { return u.channel == own.channel }) {
		s.shares = append(s.shares, own)
		if own.lapses > 0 && (c.lapses == 0 || own.lapses < c.lapses) {
			c.lapses = own.lapses
		}
	}
	return true
}

func idOf(e *decisionlog.Entry) id { return id{e.User, e.NotificationID} }

func (c *counter) finding(e event, over bool) Finding {
	return Finding{
		Over: over, At: time.UnixMilli(e.at).UTC(), User: e.entry.User, NotificationID: e.entry.NotificationID,
		Channel: e.entry.Channel, Cap: c.row.Name() + valuesOf(e.cap), Count: c.used(e.at), Room: e.cap.Room(),
	}
}
