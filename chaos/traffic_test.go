package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	writers    = 4
	writeEvery = 60 * time.Millisecond // of each writer, but for one in a hurry
	checkEvery = 30 * time.Millisecond // at each gate
	checkAbout = 6                     // people at once
)

// traffic is writers or checkers at work.
type traffic struct {
	stop context.CancelFunc
	work sync.WaitGroup
}

// end has everybody finish what is on its way.
func (w *traffic) end() {
	w.stop()
	w.work.Wait()
}

// write has people change their minds, the newest ones most often. Everybody
// has one writer.
func (r *rig) write(row *row, newest []*person, use uint64) *traffic {
	ctx, stop := context.WithCancel(context.Background())
	w := &traffic{stop: stop}
	everybody := r.ledger.everybody()
	for i := range writers {
		dice := dice(use, uint64(i))
		var mine, earlier []*person
		for n, p := range everybody {
			switch {
			case n%writers != i:
			case n >= len(everybody)-len(newest):
				mine = append(mine, p)
			default:
				earlier = append(earlier, p)
			}
		}
		w.work.Go(func() {
			pace := time.NewTicker(writeEvery)
			defer pace.Stop()
			for ctx.Err() == nil {
				p := mine[dice.IntN(len(mine))]
				if len(earlier) > 0 && dice.IntN(8) == 0 {
					p = earlier[dice.IntN(len(earlier))]
				}
				r.change(row, p, anyOp(dice, p.id), r.choose(dice, i))
				if r.target.Load() >= 0 {
					continue
				}
				select {
				case <-pace.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return w
}

// choose picks the gate of a change. As balancers of load do, all writers but
// one keep away from a gate that hangs.
func (r *rig) choose(dice *rand.Rand, writer int) *gate {
	if n := r.target.Load(); n >= 0 {
		return r.gates[n]
	}
	g := r.gates[dice.IntN(len(r.gates))]
	if writer > 0 && int32(g.index) == r.avoid.Load() {
		g = r.gates[(g.index+1)%len(r.gates)]
	}
	return g
}

// change makes one change, and notes in the ledger what came of it.
func (r *rig) change(row *row, p *person, o op, g *gate) {
	url, is := g.at()
	acknowledged, done := r.ledger.try(p, o)
	defer done()
	switch status, answer, err := call(url, o.method, o.path, o.body); {
	case err == nil && status == http.StatusOK:
		acknowledged(is)
		row.count(&row.changes, 1)
		r.look(url, is, []*person{p}) // it is to be obeyed here at once
	case err != nil || status == http.StatusServiceUnavailable:
		row.count(&row.tried, 1)
	default:
		row.blame(&row.lost, "a change of %s is answered with %d: %s", p.id, status, answer)
	}
}

// check asks every gate about people, all the time, until it is ended.
func (r *rig) check(use uint64) *traffic {
	ctx, stop := context.WithCancel(context.Background())
	w := &traffic{stop: stop}
	for i, g := range r.gates {
		dice := dice(use, uint64(i))
		w.work.Go(func() {
			pace := time.NewTicker(checkEvery)
			defer pace.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				r.checkOnce(g, dice)
				r.charge(g, fmt.Sprintf("n%d_%d_%d", use, i, n))
				select {
				case <-pace.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return w
}

// checkOnce asks a gate about a few people.
func (r *rig) checkOnce(g *gate, dice *rand.Rand) {
	everybody := r.ledger.everybody()
	if len(everybody) == 0 {
		return
	}
	some := make([]*person, checkAbout)
	for i := range some { // of whom half are changing their minds now
		from := i % 2 * max(0, len(everybody)-newPeople)
		some[i] = everybody[from+dice.IntN(len(everybody)-from)]
	}
	url, is := g.at()
	r.look(url, is, some)
}

// look asks one life of a gate about people, and judges the answers.
func (r *rig) look(url string, is place, some []*person) {
	asked := time.Now()
	decisions := ask(url, some)
	row := r.row.Load()
	if decisions == nil {
		row.count(&row.unanswered, 1)
		return
	}
	row.count(&row.checks, len(decisions))
	for i, d := range decisions {
		r.judge(row, some[i/len(topics)], topics[i%len(topics)], is, asked, d)
	}
}

// judge holds one answer against the ledger.
func (r *rig) judge(row *row, p *person, about topic, is place, asked time.Time, d decision) {
	if d.Error != nil {
		row.blame(&row.wrongStops, "gate %d says of %s and %s: %v", is.gate, p.id, about.name, d.Error)
		return
	}
	if d.Degraded {
		row.count(&row.degraded, 1)
	}
	lawful, obeyed := r.ledger.right(p, about, is, asked)
	what := func() string {
		return fmt.Sprintf("gate %d, life %d, asked %s ago about %s and %s says %+v", is.gate, is.life, time.Since(asked).Round(time.Millisecond), p.id, about.name, d)
	}
	switch send := d.sends(); {
	case send && !obeyed.send:
		row.blame(&row.disobedient, "%s, and has acknowledged otherwise itself", what())
	case lawful.allow(send):
		if !d.Degraded {
			row.sawEffect(r.ledger.behind(p, about, is.gate, asked, send))
		}
	case d.Degraded && !send: // it says itself that it cannot know
	case d.Degraded && about.mayGuess:
		row.count(&row.degradedSends, 1)
	case send:
		row.blame(&row.wrongSends, "%s, and what was acknowledged is a no", what())
	default:
		row.blame(&row.wrongStops, "%s, and what was acknowledged is a yes", what())
	}
}

// charge asks for a slot under a cap, of somebody else every now and then.
func (r *rig) charge(g *gate, notification string) {
	row := r.row.Load()
	if row.fault == "" {
		return
	}
	row.mu.Lock()
	user := fmt.Sprintf("capped %s %d", row.fault, row.checks/chargedFor)
	row.mu.Unlock()
	r.chargeOne(row, g, notification, user)
}

// chargeOne asks for a slot of somebody, and tells whether it was granted.
func (r *rig) chargeOne(row *row, g *gate, notification, user string) (granted bool) {
	url, _ := g.at()
	status, data, err := call(url, http.MethodPost, "/v1/check", question{notification, user, limited, "email"})
	var d decision
	if err != nil || status != http.StatusOK || json.Unmarshal(data, &d) != nil || !d.sends() {
		return false
	}
	row.mu.Lock()
	defer row.mu.Unlock()
	if row.charges == nil {
		row.charges = map[string]int{}
	}
	row.charges[user]++
	row.charged = max(row.charged, row.charges[user])
	return true
}

// fillCaps asks for slots of everybody who was charged while the fault went on
// until there are none, so that it shows how many were given back.
func (r *rig) fillCaps(row *row) {
	row.mu.Lock()
	users := slices.Sorted(maps.Keys(row.charges))
	row.mu.Unlock()
	for _, user := range users {
		for i := range 3 * limit {
			if !r.chargeOne(row, r.gates[i%len(r.gates)], fmt.Sprintf("filled%d", i), user) {
				break
			}
		}
	}
}

// chargedFor is for how many checks the same person is charged.
const chargedFor = 400
