package freqcap_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
)

// slotModel is the slow and obvious form of one id's slot under one cap: which
// channels use it, and what became of them.
type slotModel struct {
	at   int64                // when it was taken
	uses map[string]*useModel // by channel; there is a slot while there are any
	gone map[string]int64     // channels whose use was given back or has lapsed
}

type useModel struct {
	until     int64 // of its hold, 0 if there is none
	delivered bool
}

// ledger is the slow and obvious form of a user's caps, with reports.
type ledger struct {
	windows map[string]int64
	holds   map[string]int64                 // by id and channel, until when
	slots   map[string]map[string]*slotModel // by cap and id
}

func (l *ledger) slot(log, id string) *slotModel {
	if l.slots[log] == nil {
		l.slots[log] = map[string]*slotModel{}
	}
	if l.slots[log][id] == nil {
		l.slots[log][id] = &slotModel{uses: map[string]*useModel{}, gone: map[string]int64{}}
	}
	return l.slots[log][id]
}

// pass lets time pass: holds lapse, and what is a window old is forgotten.
func (l *ledger) pass(now int64) {
	for log, ids := range l.slots {
		for id, s := range ids {
			for channel, u := range s.uses {
				if u.until > 0 && u.until <= now {
					delete(s.uses, channel)
					s.gone[channel] = s.at
				}
			}
			if s.at <= now-l.windows[log] {
				clear(s.uses)
			}
			for channel, g := range s.gone {
				if g <= now-l.windows[log] {
					delete(s.gone, channel)
				}
			}
			if len(s.uses)+len(s.gone) == 0 {
				delete(ids, id)
			}
		}
	}
}

func (l *ledger) used(log string) (n int) {
	for _, s := range l.slots[log] {
		if len(s.uses) > 0 {
			n++
		}
	}
	return n
}

// ask asks for a slot in one log.
func (l *ledger) ask(now int64, log, id, channel string, limit int, hold int64) (admitted bool) {
	s := l.slot(log, id)
	if len(s.uses) == 0 {
		if l.used(log) >= limit {
			return false
		}
		s.at = now
	}
	if s.uses[channel] == nil {
		u := &useModel{}
		delete(l.holds, id+" "+channel)
		if hold > 0 {
			u.until = now + hold
			l.holds[id+" "+channel] = u.until
		}
		s.uses[channel] = u
		return true
	}
	if u := s.uses[channel]; u.until > 0 { // the latest ask counts
		u.until = 0
		delete(l.holds, id+" "+channel)
		if hold > 0 {
			u.until = now + hold
			l.holds[id+" "+channel] = u.until
		}
	}
	return true
}

// report reports on one channel.
func (l *ledger) report(now int64, log, id, channel string, delivered bool, limit int) string {
	s := l.slot(log, id)
	u := s.uses[channel]
	held := l.holds[id+" "+channel] > now
	delete(l.holds, id+" "+channel)
	_, wasGone := s.gone[channel]
	switch {
	case u != nil && u.delivered:
		return "unchanged"
	case u != nil && delivered:
		u.delivered, u.until = true, 0
		return "settled"
	case u != nil:
		delete(s.uses, channel)
		s.gone[channel] = s.at
		if len(s.uses) == 0 {
			return "given_back"
		}
		return "settled"
	case wasGone && delivered:
		delete(s.gone, channel)
		over := ""
		if len(s.uses) == 0 {
			if l.used(log) >= limit {
				over = " over 1"
			}
			s.at = now
		}
		s.uses[channel] = &useModel{delivered: true}
		return "settled" + over
	case held: // of a slot that has left by itself
		return "settled"
	case wasGone:
		return "unchanged"
	}
	return "unknown"
}

// testReports holds arbitrary histories of asks, holds and reports on several
// channels against the ledger.
func testReports(t *testing.T, client redis.UniversalClient) {
	rapid.Check(t, func(r *rapid.T) {
		b := onTestClock(t, client)
		const limit = 2
		window := int64(1000)
		l := &ledger{windows: map[string]int64{"all": window}, holds: map[string]int64{}, slots: map[string]map[string]*slotModel{}}
		now := int64(1_700_000_000_000)
		var told []string
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			now += rapid.SampledFrom([]int64{0, 1, 100, 199, 200, 201, 700, 1000}).Draw(r, "passes")
			b.at("u", now)
			l.pass(now)
			id, channel := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(r, "id")), rapid.SampledFrom([]string{"push", "email"}).Draw(r, "channel")
			what := rapid.SampledFrom([]string{"ask", "ask", "hold", "delivered", "failed"}).Draw(r, "what")
			told = append(told, fmt.Sprintf("at %d %s %s on %s", now, what, id, channel))
			c := capOf(time.Duration(window)*time.Millisecond, limit)
			var got, want string
			switch what {
			case "ask", "hold":
				a := ask("u", id, channel, c)
				if what == "hold" {
					a.Hold = 200 * time.Millisecond
				}
				answer := b.Judge(context.Background(), []sendgate.CapAsk{a}, 0)[0]
				if answer.Err != nil {
					r.Fatal(answer.Err)
				}
				admitted := l.ask(now, "all", id, channel, limit, a.Hold.Milliseconds())
				got, want = fmt.Sprint(answer.Admitted, answer.Caps[0].Used), fmt.Sprint(admitted, l.used("all"))
			default:
				fate, _ := sendgate.ParseFate(what)
				got, want = b.tells(id, channel, fate, 0), l.report(now, "all", id, channel, what == "delivered", limit)
			}
			if got != want {
				r.Fatalf("%s\n%q, want %q", strings.Join(told, "\n"), got, want)
			}
		}
	})
}
