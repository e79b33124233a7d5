package freqcap

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/redisconn"
)

var _ sendgate.Caps = (*Limiter)(nil)

const (
	// maxCaps and maxItems are how many caps and asks one call to Redis judges at
	// most; a single ask with more has a call to itself. So a call stays well
	// within a time limit of 5 ms, and no script keeps others waiting for long.
	maxCaps  = 512
	maxItems = 128
	// shortHold is for how long something is held for a check whose caps count for
	// several subjects, until it is known whether all of them have room.
	shortHold = 2 * time.Second
)

// Limiter judges frequency caps. It keeps no state of its own, so any number
// of them share the caps of one Redis. It is safe for concurrent use.
type Limiter struct {
	client redis.UniversalClient
	pipes  *redisconn.Pipes
	space  *keyspace.Space
	guard  *guard.Guard
	now    func() time.Time // around which periods of the calendar are looked up; Redis' clock tells which it is
	judge  *script
	settle *script
}

// New makes a Limiter over the Redis, or cluster, in which the space's keys
// live. The guard gives each call its time limit. The client is not closed.
func New(client redis.UniversalClient, space *keyspace.Space, g *guard.Guard) *Limiter {
	return &Limiter{
		client: client, pipes: redisconn.NewPipes(client), space: space, guard: g, now: sendgate.SystemClock,
		judge: newScript(presumedLua + recordLua + slotsLua + judgeLua + writeLua), settle: newScript(recordLua + slotsLua + settleLua + writeLua),
	}
}

// Judge answers every ask, in order; asks of one user are judged in that order
// too, each seeing what those before it have taken. An admitted ask has a slot
// under each of its caps, unless it only looked. An ask without caps is
// admitted.
//
// If take is more than 0, all asks are of one user. Once so many have been
// admitted, those that follow only look: the ones that would be admitted have
// Passed.
//
// Long lists take several calls, one after the other, each within the guard's
// time limit. Once a call got no answer, or the context has ended, nothing more
// is sent, and what is still open is answered with an error. So are the caps of a
// subject of whom Redis refuses something, for example because it is out of
// memory. The caps of an ask that count for others are judged all the same.
func (l *Limiter) Judge(ctx context.Context, asks []sendgate.CapAsk, take int) []sendgate.CapAnswer {
	answers := make([]sendgate.CapAnswer, len(asks))
	r := judging{Limiter: l, taking: take > 0, left: take, token: newToken(), failed: map[string]error{}}
	open := l.candidates(asks, r.taking, answers)
	waves(open)
	for start, end := 0, 0; start < len(open); start = end {
		for end < len(open) && open[end].wave == open[start].wave {
			end++
		}
		r.wave(ctx, open[start:end], answers)
	}
	return answers
}

// newToken makes a token by which a list of asks knows its short holds.
func newToken() string {
	return string(binary.BigEndian.AppendUint64(nil, rand.Uint64())[:6])
}

// judging is a list of asks on its way.
type judging struct {
	*Limiter
	taking bool
	left   int              // that are to be taken yet
	token  string           // of its short holds
	lost   error            // why nothing more is sent
	failed map[string]error // subjects that Redis has refused something of
}

// wave judges candidates that do not depend on each other.
func (r *judging) wave(ctx context.Context, list []candidate, answers []sendgate.CapAnswer) {
	items, spread := make([]*item, 0, len(list)), false
	parts := make([][]*item, len(list))
	for i := range list {
		spread = spread || list[i].spansSubjects()
		for p := range list[i].parts {
			it := &item{candidate: &list[i], part: &list[i].parts[p], look: list[i].ask.Look}
			items, parts[i] = append(items, it), append(parts[i], it)
		}
	}
	items = byKey(items)
	for len(items) > 0 {
		n := fitting(items)
		r.call(ctx, unitsOf(items[:n]))
		items = items[n:]
	}
	if spread {
		r.conclude(ctx, parts, r.token)
	}
	for i := range list {
		answers[list[i].place] = answerOf(&list[i], parts[i])
		if list[i].spansSubjects() && !list[i].ask.Look && goes(parts[i]) {
			r.left--
		}
	}
}

// call has one call judge units, as far as it is worth it.
func (r *judging) call(ctx context.Context, units []unit) {
	if r.lost == nil && ctx.Err() != nil {
		r.lost = judgeError(ctx.Err())
	}
	send := make([]unit, 0, len(units))
	for _, u := range units {
		if err := r.failed[u.key]; err != nil {
			u.fail(err)
		} else if r.lost != nil {
			u.fail(r.lost)
		} else {
			send = append(send, u)
		}
	}
	enough := r.taking && r.left <= 0
	if enough {
		for _, u := range send {
			for _, it := range u.items {
				it.look = true
			}
		}
	}
	if len(send) > 0 {
		if r.lost = r.judgeUnits(ctx, send, r.left, r.token); r.lost != nil {
			for _, u := range send {
				u.fail(r.lost)
			}
		}
	}
	for _, u := range units {
		for _, it := range u.items {
			if it.judged.err != nil {
				r.failed[u.key] = it.judged.err
			}
			went := !it.ask.Look && goes([]*item{it})
			if enough && went {
				it.judged.flag = passed
			} else if r.taking && went && !it.spansSubjects() {
				r.left--
			}
		}
	}
}

// goes tells whether a candidate may go, as far as its parts could be judged: those
// that could have room, and those that could not are not to be kept at all costs.
func goes(parts []*item) bool {
	for _, it := range parts {
		if it.judged.err != nil {
			for _, place := range it.caps {
				if it.ask.Caps[place].OnUnverifiable == sendgate.UnverifiableSuppress {
					return false
				}
			}
		} else if it.judged.flag == denied || it.judged.flag >= passed {
			return false
		}
	}
	return true
}

func judgeError(err error) error { return fmt.Errorf("judge caps: %w", err) }

// answerOf puts together what was said of a candidate's parts.
func answerOf(c *candidate, parts []*item) sendgate.CapAnswer {
	a := sendgate.CapAnswer{Admitted: true, Caps: make([]sendgate.CapState, len(c.ask.Caps))}
	if slices.ContainsFunc(parts, func(it *item) bool { return it.judged.err == nil && it.judged.flag == refuted }) {
		return sendgate.CapAnswer{Refuted: true}
	}
	for p, it := range parts {
		for i, place := range it.caps {
			if it.judged.err != nil {
				a.Caps[place], a.Err = sendgate.CapState{Unjudged: true}, it.judged.err
				continue
			}
			a.Caps[place] = it.judged.states[i]
			if p > 0 {
				a.Caps[place].At = time.UnixMilli(it.judged.at).UTC()
			}
		}
		if it.judged.err != nil {
			continue
		}
		if a.At.IsZero() {
			a.At = time.UnixMilli(it.judged.at).UTC()
		}
		a.Admitted = a.Admitted && it.judged.flag != denied
		a.Passed = a.Passed || it.judged.flag == passed
	}
	a.Passed = a.Passed && a.Admitted
	a.Admitted = a.Admitted && !a.Passed && a.Err == nil
	return a
}
