package chaos_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/redisconn"
)

// settling is what has been found to be as acknowledged, since a fault ended.
type settling struct {
	rig          *rig
	row          *row
	since, began time.Time // when the fault ended, and when it was first looked
	mu           sync.Mutex
	found        map[claim]int // with the number of changes that it was found after
	open         map[claim]string
	waited       map[claim]bool // for what was found not to be so
}

// claim is a gate that is to obey, or the record cache (of index -1) that is to
// hold, what stands of a person.
type claim struct {
	index  int
	person *person
}

const recordCache = -1

// settle waits until every gate obeys everything that was acknowledged, and
// the record cache holds nothing older; and times it.
func (r *rig) settle(row *row, since time.Time) {
	s := &settling{
		rig: r, row: row, since: since, began: time.Now(),
		found: map[claim]int{}, open: map[claim]string{}, waited: map[claim]bool{},
	}
	within(r.giveUp, s.look)
	if s.look() {
		return
	}
	for c, why := range s.open {
		row.blame(&row.lost, "%s after the end of the fault, of %s: %s", time.Since(since).Round(time.Millisecond), c.person.id, why)
	}
}

// look asks everybody once about what has not been found yet, and tells whether
// everything has been.
func (s *settling) look() bool {
	clear(s.open)
	everybody := s.rig.ledger.everybody()
	var asking sync.WaitGroup
	for _, g := range s.rig.gates {
		asking.Go(func() {
			for some := range slices.Chunk(s.missing(g.index, everybody), 30) {
				s.askGate(g, some)
			}
		})
	}
	asking.Go(func() { s.askCache(s.missing(recordCache, everybody)) })
	asking.Wait()
	return len(s.open) == 0
}

// missing are the people of whom something is still to be found at a place.
func (s *settling) missing(index int, everybody []*person) (missing []*person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range everybody {
		_, _, changes, _, busy := s.rig.ledger.stands(p)
		at, found := s.found[claim{index, p}]
		if busy {
			s.open[claim{index, p}] = "a change is still on its way"
		} else if !found || at != changes {
			missing = append(missing, p)
		}
	}
	return missing
}

func (s *settling) askGate(g *gate, people []*person) {
	url, _ := g.at()
	decisions := ask(url, people)
	for i, p := range people {
		right, _, changes, acked, busy := s.rig.ledger.stands(p)
		why := ""
		if decisions == nil {
			why = "no answer"
		}
		for j := range decisions[min(len(decisions), i*len(topics)):min(len(decisions), (i+1)*len(topics))] {
			if d := decisions[i*len(topics)+j]; d.Degraded || !right[j].allow(d.sends()) {
				why = topics[j].name + " is answered " + d.Verdict + " for " + d.Reason + " at " + d.Step
				if d.Degraded {
					why += ", degraded"
				}
			}
		}
		s.note(claim{g.index, p}, changes, acked, busy, why)
	}
}

// askCache reads what the record cache holds. Nothing at all is right: a check
// reads the store then.
func (s *settling) askCache(people []*person) {
	if len(people) == 0 {
		return
	}
	// A node that hangs must not hold up what is found of others.
	ctx, cancel := context.WithTimeout(s.rig.t.Context(), cacheLimit)
	defer cancel()
	values, commands := make([]*redis.StringCmd, len(people)), make([]redisconn.Command, len(people))
	for i, p := range people {
		key := s.rig.space.Record(sendgate.UserID(p.id))
		values[i] = redis.NewStringCmd(ctx, "get", key)
		commands[i] = redisconn.Command{Key: key, Cmder: values[i]}
	}
	redisconn.Exec(ctx, s.rig.client, commands)
	for i, p := range people {
		_, least, changes, acked, busy := s.rig.ledger.stands(p)
		text, err := values[i].Result()
		why := ""
		if err != nil && !errors.Is(err, redis.Nil) {
			why = "the record cache: " + err.Error()
		} else if err == nil {
			if revision, _, ok := keyspace.ParseRecordValue(text); ok && revision < least {
				why = "the record cache holds an older revision"
			}
		}
		s.note(claim{recordCache, p}, changes, acked, busy, why)
	}
}

// cacheLimit is how long one look into the record cache may take.
const cacheLimit = 500 * time.Millisecond

// note takes what was found of a person, and times it.
func (s *settling) note(c claim, changes int, acked time.Time, busy bool, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why != "" || busy {
		s.open[c], s.waited[c] = why, s.waited[c] || why != ""
		return
	}
	s.found[c] = changes
	from := s.began
	if s.waited[c] {
		from = s.since // which may be well before
	}
	if acked.After(from) {
		from = acked
	}
	took := time.Since(from)
	s.row.sawEffect(took)
	if took > promise {
		s.row.blame(&s.row.late, "in force after %s only, at %d (%d is the record cache): %s", took.Round(time.Millisecond), c.index, recordCache, c.person.id)
	}
}

// audit reads everybody's record from the store itself.
func (r *rig) audit(row *row) {
	var reading sync.WaitGroup
	for some := range slices.Chunk(r.ledger.everybody(), 30) {
		reading.Go(func() {
			for _, p := range some {
				record, err := r.store.Get(r.t.Context(), sendgate.UserID(p.id))
				_, least, _, _, _ := r.ledger.stands(p)
				switch {
				case err != nil:
					row.blame(&row.lost, "the record of %s cannot be read: %v", p.id, err)
				case record.Revision < least:
					row.blame(&row.lost, "the store has revision %d of %s, and %d was acknowledged", record.Revision, p.id, least)
				}
			}
		})
	}
	reading.Wait()
}
