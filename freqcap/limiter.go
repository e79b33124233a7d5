package freqcap

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/keyspace"
)

var _ sendgate.Caps = (*Limiter)(nil)

// maxCaps is how many caps one call to Redis judges at most, over all its asks;
// a single ask with more has a call to itself. Each cap takes Redis 10 to 20 µs,
// so that a call stays well within a time limit of 5 ms, and no script keeps
// others waiting for long.
const maxCaps = 128

// Limiter judges frequency caps. It keeps no state of its own, so any number
// of them share the caps of one Redis. It is safe for concurrent use.
type Limiter struct {
	client redis.UniversalClient
	space  *keyspace.Space
	guard  *guard.Guard
	source string // of the script
	sha    string // that Redis knows it by
}

// New makes a Limiter over the Redis, or cluster, in which the space's keys
// live. The guard gives each call its time limit. The client is not closed.
func New(client redis.UniversalClient, space *keyspace.Space, g *guard.Guard) *Limiter {
	return &Limiter{client: client, space: space, guard: g, source: chargeLua, sha: redis.NewScript(chargeLua).Hash()}
}

// Judge answers every ask, in order; asks of one user are judged in that order
// too, each seeing what those before it have taken. An admitted ask has a slot
// under each of its caps, unless it only looked. An ask without caps is
// admitted.
//
// Long lists, of more than about a hundred caps, take several calls, one after
// the other, each within the guard's time limit. Once a call got no answer, or the context
// has ended, nothing more is sent, and the asks still open are answered with an
// error. So is an ask that Redis refuses, for example because it is out of
// memory, and with it the user's later ones.
func (l *Limiter) Judge(ctx context.Context, asks []sendgate.CapAsk) []sendgate.CapAnswer {
	answers := make([]sendgate.CapAnswer, len(asks))
	open := byUser(l.candidates(asks, answers))
	var lost error // why nothing more is sent
	var last unit  // of the call before
	for len(open) > 0 {
		n := fitting(open)
		units := unitsOf(open[:n])
		open = open[n:]
		if lost == nil && ctx.Err() != nil {
			lost = fmt.Errorf("judge caps: %w", ctx.Err())
		}
		send := units
		if last.err != nil && last.user == units[0].user {
			units[0].err = last.err
			send = units[1:]
		}
		if lost == nil && len(send) > 0 {
			lost = l.call(ctx, send)
		}
		for i := range units {
			units[i].settle(lost, answers)
		}
		last = units[len(units)-1]
	}
	return answers
}

// candidates prepares the asks that have to be put to Redis, and answers the
// others: those without caps, and those with a cap that cannot be counted.
func (l *Limiter) candidates(asks []sendgate.CapAsk, answers []sendgate.CapAnswer) []candidate {
	open := make([]candidate, 0, len(asks))
next:
	for i := range asks {
		if len(asks[i].Caps) == 0 {
			answers[i].Admitted = true
			continue
		}
		c := candidate{ask: &asks[i], place: i, counters: make([]counter, len(asks[i].Caps))}
		for j, bound := range asks[i].Caps {
			var err error
			if c.counters[j], err = counterOf(l.space, asks[i].User, bound); err != nil {
				answers[i].Err = fmt.Errorf("judge caps: %w", err)
				continue next
			}
		}
		open = append(open, c)
	}
	return open
}
