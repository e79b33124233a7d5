package replay

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog"
)

// counter is where caps of one kind, subject, set of fields with their values and
// window count.
type counter struct {
	replay   *Replay
	row      *Row
	kind     sendgate.CapKind
	latest   decisionlog.Cap // as it was last told of
	window   int64           // in milliseconds; 0 of a calendar
	width    int64           // of a bucket; 0 where there are none
	span     int64           // for how long an id is known
	calendar calendar

	slots  []*slot // that are taken, by rising time, as far back as is of use
	gone   int     // of them, those whose ids are not known any more
	known  map[id]*slot
	notes  map[id][]use // that have ended: given back, or lapsed
	noted  int          // ids with notes that the last cleaning has left
	lapses int64        // the first instant at which a hold may end; 0 is none
	users  map[sendgate.UserID]bool
	moment moment
}

// id is a notification's. Ids are scoped to the user, also where users share a
// subject.
type id struct {
	user sendgate.UserID
	name string
}

// use is one channel's use of a slot.
type use struct {
	channel   string
	at        int64
	delivered bool
	lapses    int64 // 0 is never
}

// slot is taken by one notification, which may travel on several channels.
type slot struct {
	use
	id     id
	shares []use // of other channels
}

// counterOf finds or makes the counter of a cap for a user's notification.
func (r *Replay) counterOf(user sendgate.UserID, of *decisionlog.Cap) (*counter, error) {
	own, err := of.Cap()
	if err != nil {
		return nil, err
	}
	key := keyOf(user, of)
	c := r.counters[key]
	if c == nil {
		row, err := r.rowOf(of)
		if err != nil {
			return nil, err
		}
		c = &counter{
			replay: r, row: row, kind: own.Kind, latest: *of, window: own.Window.Milliseconds(),
			known: map[id]*slot{}, users: map[sendgate.UserID]bool{},
		}
		if own.Kind == sendgate.CapBuckets {
			c.width = c.window / int64(own.Buckets)
		}
		r.counters[key] = c
	}
	if c.span = c.window; own.Kind != sendgate.CapRolling {
		c.span = own.Remember.Milliseconds()
	}
	if !c.users[user] {
		c.users[user] = true
		if r.people[user] == nil {
			r.people[user] = map[*counter]bool{}
		}
		r.people[user][c] = true
	}
	return c, nil
}

// keyOf is the same for caps that count in the same place. No id may contain a
// control character.
func keyOf(user sendgate.UserID, c *decisionlog.Cap) string {
	subject := c.SubjectID
	if c.Subject == "" {
		subject = string(user)
	}
	fields := make([]string, len(c.By))
	for i, f := range c.By {
		fields[i] = string(f) + "\x1e" + c.Values[i]
	}
	slices.Sort(fields)
	return rowKey(c) + "\x1f" + subject + "\x1f" + strings.Join(fields, "\x1f")
}

// used is how many slots count at an instant.
func (c *counter) used(now int64) int {
	if c.kind == sendgate.CapCalendar {
		if c.calendar.ends <= now {
			return 0
		}
		return len(c.slots) - c.firstAt(c.calendar.since)
	}
	return len(c.slots) - c.firstAt(now-c.window+1)
}

// firstAt is the place of the first slot that was taken at some time or later.
func (c *counter) firstAt(at int64) int {
	return sort.Search(len(c.slots), func(i int) bool { return c.slots[i].at >= at })
}

// put takes a slot, and keeps the worst count of any window that it is in.
func (c *counter) put(s *slot, now int64, limit int) {
	i := c.firstAt(s.at + 1)
	c.slots = slices.Insert(c.slots, i, s)
	if s.at <= now-c.span {
		c.gone++
	} else {
		c.known[s.id] = s
	}
	if s.lapses > 0 && (c.lapses == 0 || s.lapses < c.lapses) {
		c.lapses = s.lapses
	}
	if c.kind == sendgate.CapCalendar {
		c.row.worst(c.used(now), limit)
		return
	}
	for ; i < len(c.slots) && c.slots[i].at < s.at+c.window; i++ {
		at := c.slots[i].at
		if i+1 == len(c.slots) || c.slots[i+1].at > at {
			c.row.worst(i+1-c.firstAt(at-c.window+1), limit)
		}
	}
}

// drop makes a slot free.
func (c *counter) drop(s *slot) {
	if i := slices.Index(c.slots, s); i >= 0 {
		if c.slots = slices.Delete(c.slots, i, i+1); i < c.gone {
			c.gone--
		}
	}
	if c.known[s.id] == s {
		delete(c.known, s.id)
	}
}

// pass lets the time go by until an instant: holds end, and what is of no more
// use is forgotten. Windows that a late report may fall into are kept.
func (c *counter) pass(now int64) {
	c.endHolds(now)
	for ; c.gone < len(c.slots) && c.slots[c.gone].at <= now-c.span; c.gone++ {
		if s := c.slots[c.gone]; c.known[s.id] == s {
			delete(c.known, s.id)
		}
	}
	keep := now - max(c.span, 2*c.window)
	if c.kind == sendgate.CapCalendar {
		keep = min(keep, c.calendar.since-1)
	}
	if old := min(c.gone, c.firstAt(keep+1)); old > 0 {
		c.slots = slices.Delete(c.slots, 0, old)
		c.gone -= old
	}
	if len(c.notes) > 2*c.noted+16 {
		maps.DeleteFunc(c.notes, func(_ id, notes []use) bool { return notes[len(notes)-1].at <= now-c.span })
		c.noted = len(c.notes)
	}
}

// idle tells whether a counter is as good as a new one.
func (c *counter) idle(now int64) bool {
	c.pass(now)
	if len(c.slots) > 0 || c.kind == sendgate.CapCalendar && c.calendar.ends > now {
		return false
	}
	for _, notes := range c.notes {
		if notes[len(notes)-1].at > now-c.span {
			return false
		}
	}
	return true
}

// endHolds frees what was held for a delivery that nobody has reported.
func (c *counter) endHolds(now int64) {
	if c.lapses == 0 || now < c.lapses {
		return
	}
	next := int64(0)
	sooner := func(u *use) {
		if u.lapses > 0 && (next == 0 || u.lapses < next) {
			next = u.lapses
		}
	}
	for _, s := range slices.Clone(c.slots) {
		s.shares = slices.DeleteFunc(s.shares, func(u use) bool {
			over := u.lapses > 0 && u.lapses <= now
			if over {
				c.note(s.id, u)
			}
			return over
		})
		if s.lapses > 0 && s.lapses <= now && c.release(s) {
			continue
		}
		sooner(&s.use)
		for i := range s.shares {
			sooner(&s.shares[i])
		}
	}
	c.lapses = next
}

// release takes the channel that has a slot off it. Another one that uses the
// slot has it then; otherwise it is free, and true is returned.
func (c *counter) release(s *slot) (free bool) {
	c.note(s.id, s.use)
	if len(s.shares) == 0 {
		c.drop(s)
		return true
	}
	taken := s.at
	s.use, s.shares = s.shares[0], s.shares[1:]
	s.at = taken
	return false
}

// note remembers a use that has ended.
func (c *counter) note(of id, u use) {
	if c.notes == nil {
		c.notes = map[id][]use{}
	}
	c.notes[of] = append(c.notes[of], u)
}

func (c *counter) noteOf(of id, channel string, now int64) (place int, ok bool) {
	for i, n := range c.notes[of] {
		if n.at > now-c.span && (channel == "" || n.channel == channel) {
			return i, true
		}
	}
	return 0, false
}
