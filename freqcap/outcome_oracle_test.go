package freqcap_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/quiet"
)

// ledger is the slow and obvious form of one cap's record, with reports: every
// slot that was taken, who uses it, and what became of those who did. Instants
// are milliseconds.
type ledger struct {
	counts   func(at, now int64) bool // whether a slot that was taken then is still one
	late     func(at, now int64) bool // whether a delivery then is counted now
	remember int64                    // for how long an id is known
	tallied  bool                     // slots count though their ids are forgotten
	written  int64                    // when a slot was last taken
	slots    map[string]*slotModel    // by id
	nameless []*slotModel             // of ids that are forgotten
}

// slotModel is what is known of an id. It takes a slot while a channel uses it.
type slotModel struct {
	id   string
	at   int64 // when it was taken
	uses map[string]*useModel
	gone map[string]int64 // channels whose use was given back or has lapsed: when its slot was taken
}

// useModel is how a channel uses a slot.
type useModel struct {
	until     int64 // of its hold, 0 if there is none
	short     bool  // that hold waits to be confirmed
	delivered bool
}

func newLedger(counts func(at, now int64) bool, remember int64, tallied bool) *ledger {
	return &ledger{counts: counts, late: counts, remember: remember, tallied: tallied, slots: map[string]*slotModel{}}
}

// pass lets time pass: holds lapse, and what is old is forgotten.
func (l *ledger) pass(now int64) {
	for id, s := range l.slots {
		for channel, u := range s.uses {
			if u.until > 0 && u.until <= now {
				delete(s.uses, channel)
				s.gone[channel] = s.at
			}
		}
		for channel, at := range s.gone {
			if at <= now-l.remember {
				delete(s.gone, channel)
			}
		}
		if s.at <= now-l.remember {
			l.nameless = append(l.nameless, &slotModel{id: id, at: s.at, uses: s.uses})
			s.uses = map[string]*useModel{}
		}
		if len(s.uses)+len(s.gone) == 0 {
			delete(l.slots, id)
		}
	}
	for _, s := range l.nameless {
		for channel, u := range s.uses {
			if u.until > 0 && u.until <= now {
				delete(s.uses, channel)
			}
		}
	}
}

func (l *ledger) used(now int64) (n int) {
	for _, s := range l.slots {
		if len(s.uses) > 0 && l.counts(s.at, now) {
			n++
		}
	}
	for _, s := range l.nameless {
		if len(s.uses) > 0 && l.counts(s.at, now) {
			n++
		}
	}
	return n
}

// has tells whether an id has a slot.
func (l *ledger) has(id string) bool { return l.slots[id] != nil && len(l.slots[id].uses) > 0 }

// open tells whether there is a slot for an id.
func (l *ledger) open(now int64, id string, limit int) bool { return l.has(id) || l.used(now) < limit }

// take takes a slot for an id on a channel, for good or until a hold is over.
// What finds a hold already takes it over, and never cuts it short; a short hold
// leaves a longer one alone.
func (l *ledger) take(now int64, id, channel string, hold int64, short bool) {
	if !l.has(id) {
		s := &slotModel{id: id, at: now, uses: map[string]*useModel{}, gone: map[string]int64{}}
		if known := l.slots[id]; known != nil {
			s.gone = known.gone
		}
		l.slots[id] = s
	}
	u := l.slots[id].uses[channel]
	switch {
	case u == nil:
		for _, s := range l.heldNameless(id, channel) {
			delete(s.uses, channel)
		}
		l.written = now
		u = &useModel{short: short}
		l.slots[id].uses[channel] = u
	case u.until == 0 || short && !u.short:
		return
	}
	u.short = short
	if u.until = max(u.until, now+hold); hold == 0 {
		u.until = 0
	}
}

// drop takes a short hold back.
func (l *ledger) drop(id, channel string) {
	if u := l.slots[id].uses[channel]; u != nil && u.short && u.until > 0 {
		delete(l.slots[id].uses, channel)
	}
}

// heldNameless are the slots that an id has on hold on a channel, and that no
// longer know it.
func (l *ledger) heldNameless(id, channel string) (found []*slotModel) {
	for _, s := range l.nameless {
		if u := s.uses[channel]; s.id == id && u != nil && u.until > 0 {
			found = append(found, s)
		}
	}
	return found
}

// delivered takes a report of a delivery at some time.
func (l *ledger) delivered(now int64, id, channel string, at int64, limit int) string {
	s, held := l.slots[id], l.heldNameless(id, channel)
	for _, n := range held {
		n.uses[channel].until = 0
	}
	switch {
	case s != nil && s.uses[channel] != nil && s.uses[channel].delivered:
		return "unchanged"
	case s != nil && s.uses[channel] != nil:
		s.uses[channel].delivered, s.uses[channel].until = true, 0
		return "settled"
	case s != nil && l.wasGone(s, channel) && (len(s.uses) > 0 || l.late(at, now)):
		over := ""
		if len(s.uses) == 0 {
			if s.at = at; l.used(now) >= limit {
				over = " over 1"
			}
		}
		delete(s.gone, channel)
		s.uses[channel] = &useModel{delivered: true}
		return "settled" + over
	case len(held) > 0:
		return "settled"
	case s != nil && l.wasGone(s, channel):
		return "expired"
	}
	return "unknown"
}

func (l *ledger) wasGone(s *slotModel, channel string) bool {
	_, gone := s.gone[channel]
	return gone
}

// failed takes a report of a failure.
func (l *ledger) failed(id, channel string) string {
	s, held := l.slots[id], l.heldNameless(id, channel)
	for _, n := range held {
		delete(n.uses, channel)
	}
	switch {
	case s != nil && s.uses[channel] != nil && s.uses[channel].delivered:
		return "unchanged"
	case s != nil && s.uses[channel] != nil:
		delete(s.uses, channel)
		s.gone[channel] = s.at
		if len(s.uses) > 0 {
			return "settled"
		}
		return "given_back"
	case len(held) > 0 && l.tallied:
		return "given_back"
	case len(held) > 0: // of a slot that has left by itself
		return "settled"
	case s != nil && l.wasGone(s, channel):
		return "unchanged"
	}
	return "unknown"
}

const (
	aMinute = int64(60_000)
	anHour  = 60 * aMinute
	aDay    = 24 * anHour
)

// drawKind draws a kind of cap, and its ledger. Where ids are soon forgotten, only
// one channel is used: whose slot it was is forgotten, too.
func drawKind(r *rapid.T, limit int) (c sendgate.BoundCap, l *ledger, channels []string) {
	channels = []string{"push", "email"}
	window := rapid.SampledFrom([]int64{aDay, 2 * aMinute}).Draw(r, "window") // one is shorter than a hold
	switch rapid.SampledFrom([]string{"rolling", "buckets", "day"}).Draw(r, "kind") {
	case "rolling":
		return capOf(time.Duration(window)*time.Millisecond, limit), newLedger(func(at, now int64) bool { return at > now-window }, window, false), channels
	case "buckets":
		c = bucketsOf(time.Duration(window)*time.Millisecond, 4, limit)
		l = newLedger(func(at, now int64) bool { return at/(window/4) >= now/(window/4)-4 }, 0, true)
	default:
		c = calendarOf(quiet.Day, "UTC", limit)
		l = newLedger(func(at, now int64) bool { return at/aDay == now/aDay }, 0, true)
		l.late = func(at, _ int64) bool { return at >= l.written/aDay*aDay } // of the day that the record is about
	}
	c.Remember = 31 * 24 * time.Hour
	if rapid.Bool().Draw(r, "forgets") {
		c.Remember, channels = time.Minute, channels[:1]
	}
	l.remember = c.Remember.Milliseconds()
	return c, l, channels
}

// testReports holds arbitrary histories of asks, holds and reports on several
// channels, under every kind of cap, against the ledger.
func testReports(t *testing.T, client redis.UniversalClient) {
	rapid.Check(t, func(r *rapid.T) {
		b := onTestClock(t, client)
		const limit = 2
		c, l, channels := drawKind(r, limit)
		now := int64(1_700_000_000_000)
		b.SetNow(func() time.Time { return instant(now) })
		told := []string{c.Kind.String() + fmt.Sprint(" remembers ", l.remember)}
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			now += rapid.SampledFrom([]int64{0, 1, aMinute / 2, aMinute, 2 * aMinute, 3*aMinute - 1, 3 * aMinute, anHour, 6 * anHour, 23 * anHour, aDay, 30 * anHour}).Draw(r, "passes")
			b.at("u", now)
			l.pass(now)
			id, channel := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(r, "id")), rapid.SampledFrom(channels).Draw(r, "channel")
			what := rapid.SampledFrom([]string{"ask", "hold", "hold", "look", "delivered", "late", "failed"}).Draw(r, "what")
			told = append(told, fmt.Sprintf("at %d %s %s on %s", now, what, id, channel))
			var got, want string
			switch what {
			case "ask", "hold", "look":
				a := ask("u", id, channel, c)
				if a.Look = what == "look"; what == "hold" {
					a.Hold = time.Duration(rapid.SampledFrom([]int64{aMinute, 3 * aMinute}).Draw(r, "for")) * time.Millisecond
				}
				answer := b.Judge(context.Background(), []sendgate.CapAsk{a}, 0)[0]
				if answer.Err != nil {
					r.Fatal(answer.Err)
				}
				open := l.open(now, id, limit)
				if open && !a.Look {
					l.take(now, id, channel, a.Hold.Milliseconds(), false)
				}
				got, want = fmt.Sprint(answer.Admitted, answer.Caps[0].Used), fmt.Sprint(open, l.used(now))
			case "failed":
				got, want = b.tells(id, channel, sendgate.Failed, 0), l.failed(id, channel)
			default:
				at := now
				if what == "late" {
					at -= rapid.SampledFrom([]int64{1, anHour, 20 * anHour, 40 * anHour}).Draw(r, "ago")
				}
				got, want = b.tells(id, channel, sendgate.Delivered, at), l.delivered(now, id, channel, at, limit)
				l.pass(now) // it may be forgotten at once
			}
			if got, want := fmt.Sprint(got, ", ", b.taken(c)), fmt.Sprint(want, ", ", l.used(now)); got != want {
				r.Fatalf("%s\n%q, want %q", strings.Join(told, "\n"), got, want)
			}
			l.nameless = slices.DeleteFunc(l.nameless, func(s *slotModel) bool { return len(s.uses) == 0 })
		}
	})
}
