package freqcap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
)

// Count is what one counter of a subject's record holds, for a person to read.
type Count struct {
	Kind    sendgate.CapKind
	Span    string // its window as it is written: `24h`, or `day`
	Parts   int    // that the window of buckets is cut into
	By      []sendgate.Field
	Values  []string
	Limit   int         // that it was last judged by
	Used    int         // slots that are taken
	Slots   []time.Time // when they were, as far as that is known; the oldest first
	leaving []leaving   // when they leave, the first to do so first
	// Of a link to another subject: which. The rest is empty then.
	Subject   sendgate.Field
	SubjectID string
}

// leaving is when so many slots come free, in milliseconds.
type leaving struct{ at, slots int64 }

// ResetsAt is when the next slot comes free by the passing of time, or, where a
// limit leaves no room, when there is room again. It is zero if no slot is taken,
// or if there never will be room.
func (c *Count) ResetsAt(limit int) time.Time {
	nth := int64(max(0, c.Used-limit))
	for _, l := range c.leaving {
		if nth -= l.slots; nth < 0 {
			return time.UnixMilli(l.at).UTC()
		}
	}
	return time.Time{}
}

// Usage is what a subject has been charged.
type Usage struct {
	At     time.Time // by the clock of the caps
	Bytes  int       // of the record, without its key
	Holds  int       // that wait for a report of delivery
	Counts []Count
}

// Usage reads what a subject has been charged: a user, where the field is empty,
// or what another field of a check names. It writes nothing.
func (l *Limiter) Usage(ctx context.Context, subject sendgate.Field, id string) (Usage, error) {
	key := l.space.Caps(subject, id)
	var record string
	var now time.Time
	err := l.guard.Do(ctx, func(ctx context.Context) (err error) {
		if now, err = clockOf(ctx, l.client, key); err != nil {
			return err
		}
		record, err = l.client.Get(ctx, key).Result()
		return err
	})
	if errors.Is(err, redis.Nil) {
		return Usage{At: now}, nil
	}
	if err != nil {
		return Usage{}, fmt.Errorf("read caps: %w", err)
	}
	return decode(record, now)
}

// clockOf reads the clock of the Redis that has a key.
func clockOf(ctx context.Context, client redis.UniversalClient, key string) (time.Time, error) {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		node, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return time.Time{}, err
		}
		client = node
	}
	return client.Time(ctx).Result()
}

var errRecord = errors.New("the record of caps has a form that is not known")

// reader reads a record from its beginning: see record.lua.
type reader struct {
	left string
	bad  bool
}

func (r *reader) take(n int) string {
	if n > len(r.left) {
		r.bad, r.left = true, ""
		return strings.Repeat("\x00", n)
	}
	taken := r.left[:n]
	r.left = r.left[n:]
	return taken
}

func (r *reader) number(n int) int64 {
	var b [8]byte
	copy(b[8-n:], r.take(n))
	return int64(binary.BigEndian.Uint64(b[:]))
}

const (
	holdSize  = 28
	entrySize = 14
	noteSize  = 15
	// timeMask leaves the mark of delivery out of an entry's time.
	timeMask = 1<<47 - 1
)

// decode reads a record as it is at an instant.
func decode(record string, now time.Time) (Usage, error) {
	u, r := Usage{At: now.UTC(), Bytes: len(record)}, &reader{left: record}
	if r.take(1) != "1" {
		return u, errRecord
	}
	lapsed := map[string]bool{} // by section, id and channel
	for range r.number(2) {
		if names, over := r.hold(now.UnixMilli()); over {
			for _, name := range names {
				lapsed[name] = true
			}
		} else {
			u.Holds++
		}
		if r.bad {
			return u, errRecord
		}
	}
	for len(r.left) > 0 && !r.bad {
		if c, ok := r.section(now.UnixMilli(), lapsed); ok {
			u.Counts = append(u.Counts, c)
		}
	}
	if r.bad {
		return u, errRecord
	}
	return u, nil
}

// hold reads one hold: what it holds, by section, id and channel, and whether it
// is over.
func (r *reader) hold(now int64) (names []string, over bool) {
	h := &reader{left: r.take(holdSize)}
	h.take(1 + 6)
	over = h.number(6) <= now
	h.take(6)
	what := h.take(6 + 2)
	for range h.number(1) {
		names = append(names, r.take(int(r.number(2)))+what)
	}
	return names, over
}

// section reads one section, and tells whether there is anything in it.
func (r *reader) section(now int64, lapsed map[string]bool) (c Count, ok bool) {
	name := r.take(int(r.number(2)))
	span := r.number(5)
	c.Limit = int(r.number(2))
	entries, notes := int(r.number(2)), int(r.number(1))
	log := r.take(entries * entrySize)
	r.take(notes * noteSize)
	counted := &reader{left: r.take(r.tallySize(name))}
	var gone []int64 // when slots were taken whose holds are over
	for ; len(log) >= entrySize; log = log[entrySize:] {
		e := &reader{left: log[:entrySize]}
		at := e.number(6) & timeMask
		switch {
		case at <= now-span:
		case lapsed[name+e.left]:
			gone = append(gone, at)
		default:
			c.Slots = append(c.Slots, time.UnixMilli(at).UTC())
		}
	}
	if r.bad || name == "" || !c.named(name) {
		r.bad = true
		return c, false
	}
	switch name[0] {
	case kindRolling:
		for _, at := range c.Slots {
			c.leaving = append(c.leaving, leaving{at.UnixMilli() + span, 1})
		}
	case kindBuckets:
		var ok bool
		c.leaving, ok = bucketsAt(counted, now, gone)
		r.bad = r.bad || !ok
	case kindCalendar:
		c.leaving = calendarAt(counted, now, gone)
	}
	for _, l := range c.leaving {
		c.Used += int(l.slots)
	}
	return c, c.Used > 0 || len(c.Slots) > 0
}

// tallySize is how long the tally is that comes next, of a section of that name.
func (r *reader) tallySize(name string) int {
	const calendarSize, bucketsHead, bucketsN = 18, 13, 6
	switch {
	case strings.HasPrefix(name, string(kindCalendar)):
		return calendarSize
	case !strings.HasPrefix(name, string(kindBuckets)):
		return 0
	case len(r.left) > bucketsN:
		return bucketsHead + 2*(int(r.left[bucketsN])+1)
	}
	return bucketsHead
}

// bucketsAt is what buckets count, but for slots that were taken at some times and
// are gone, by when it leaves. Buckets of no width make no sense.
func bucketsAt(r *reader, now int64, gone []int64) (all []leaving, ok bool) {
	width, n, first := r.number(6), r.number(1), r.number(6)
	if width == 0 || n == 0 {
		return nil, false
	}
	for i := range n + 1 {
		count := r.number(2)
		if first+i < now/width-n {
			continue
		}
		for _, at := range gone {
			if at/width == first+i {
				count--
			}
		}
		if count > 0 {
			all = append(all, leaving{(first + i + n + 1) * width, count})
		}
	}
	return all, true
}

// calendarAt is the same of a period of the calendar, all of which leaves at once.
func calendarAt(r *reader, now int64, gone []int64) []leaving {
	r.take(4)
	since, ends, count := r.number(6), r.number(6), r.number(2)
	for _, at := range gone {
		if at >= since {
			count--
		}
	}
	if ends <= now || count < 1 {
		return nil
	}
	return []leaving{{ends, count}}
}

// named reads a section's name.
func (c *Count) named(name string) (ok bool) {
	if name[0] == kindLink {
		c.Subject, c.SubjectID, ok = readField(name[1:])
		return ok
	}
	parts := strings.Split(name[1:], separator)
	c.Span = parts[0]
	switch name[0] {
	case kindRolling:
		c.Kind = sendgate.CapRolling
	case kindBuckets:
		c.Kind = sendgate.CapBuckets
		var n string
		c.Span, n, _ = strings.Cut(c.Span, "/")
		c.Parts, _ = strconv.Atoi(n)
	case kindCalendar:
		c.Kind = sendgate.CapCalendar
	default:
		return false
	}
	for _, part := range parts[1:] {
		f, value, ok := readField(part)
		if !ok {
			return false
		}
		c.By, c.Values = append(c.By, f), append(c.Values, value)
	}
	return true
}
