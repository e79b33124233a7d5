package chaos_test

import (
	"sync"
	"time"
)

// promise is how long after its acknowledgement a change is in force
// everywhere, or after the end of the fault that was in the way.
const promise = 5 * time.Second

// ledger is what this side knows for certain: what was acknowledged when, and
// when a fault was in the way.
type ledger struct {
	mu     sync.Mutex
	people []*person
	faults []fault
}

// person is one user. All of a person's changes are made by one writer, one
// after the other.
type person struct {
	id       string
	versions []version // the last one stands
	busy     bool      // a change is on its way
}

// version is what may be true of a person from one acknowledgement to the next.
type version struct {
	states map[state]int64 // with the least revision that each can have
	by     place           // who acknowledged it
	acked  time.Time
	ended  time.Time // when the next one was acknowledged; zero while it stands
}

// place is one life of a gate.
type place struct{ gate, life int }

var nowhere = place{gate: -1}

// fault is a time in which changes may be late at some gates. It goes on while
// over is zero.
type fault struct {
	touches     reach
	began, over time.Time
}

// reach is the index of the gate that a fault is in the way of, or one of
// these. All other gates are held to the promise while it goes on.
type reach int

const (
	theVictim reach = 0
	everyGate reach = -1
	noGate    reach = -2
)

// enrol adds people whom nobody has seen.
func (l *ledger) enrol(ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.people = append(l.people, l.stranger(id))
	}
}

// stranger is somebody whom nobody has seen, and whom nobody asks about before
// they join.
func (l *ledger) stranger(id string) *person {
	return &person{id: id, versions: []version{{states: map[state]int64{{}: 0}, by: nowhere}}}
}

// join adds somebody.
func (l *ledger) join(p *person) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.people = append(l.people, p)
}

func (l *ledger) everybody() []*person {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*person(nil), l.people...)
}

// try notes that a change is on its way: from now on it may be true. What is
// returned notes that it was acknowledged.
func (l *ledger) try(p *person, o op) (acknowledged func(by place), done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.busy = true
	standing := &p.versions[len(p.versions)-1]
	after := map[state]int64{}
	for s, revision := range standing.states {
		next := o.change(s)
		if next != s {
			revision++
		}
		if least, ok := after[next]; !ok || revision < least {
			after[next] = revision
		}
	}
	for s, revision := range after {
		if least, ok := standing.states[s]; !ok || revision < least {
			standing.states[s] = revision
		}
	}
	acknowledged = func(by place) {
		l.mu.Lock()
		defer l.mu.Unlock()
		now := time.Now()
		p.versions[len(p.versions)-1].ended = now
		p.versions = append(p.versions, version{states: after, by: by, acked: now})
	}
	done = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		p.busy = false
	}
	return acknowledged, done
}

func (l *ledger) faultBegins(touches reach) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fault{touches: touches, began: time.Now()})
}

func (l *ledger) faultEnds() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.faults[len(l.faults)-1].over = now
	return now
}

// right says which answers to a check are right, of a gate that was asked at
// some time and has answered now. obeyed are those of them that respect what
// this very life of the gate has acknowledged itself, fault or no fault.
func (l *ledger) right(p *person, about topic, by place, asked time.Time) (lawful, obeyed answers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, thisLife := 0, false
	for i, v := range p.versions {
		if v.by.gate == by.gate && v.acked.Before(asked) {
			own, thisLife = i, v.by.life == by.life
		}
	}
	for i, v := range p.versions[own:] {
		for s := range v.states {
			obeyed.add(about, s)
			if i == len(p.versions[own:])-1 || l.excused(by.gate, v.ended, asked) {
				lawful.add(about, s)
			}
		}
	}
	if !thisLife {
		obeyed = answers{send: true, stop: true}
	}
	return lawful, obeyed
}

// excused tells whether a gate that is asked at some time may not know yet what
// was acknowledged at another.
func (l *ledger) excused(gate int, acked, asked time.Time) bool {
	due := acked.Add(promise)
	return asked.Before(due) || l.inTheWay(gate, due, asked)
}

// inTheWay tells whether a fault may have kept a gate that is asked at some time
// from knowing what it was to know at another.
func (l *ledger) inTheWay(gate int, due, asked time.Time) bool {
	for _, f := range l.faults {
		touched := f.touches == everyGate || f.touches == reach(gate)
		if touched && f.began.Before(due) && (f.over.IsZero() || asked.Before(f.over.Add(promise))) {
			return true
		}
	}
	return false
}

// behind is for how long what a gate has answered was not right any more when
// it was asked, where no fault was in its way.
func (l *ledger) behind(p *person, about topic, gate int, asked time.Time, send bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(p.versions) - 1; i >= 0; i-- {
		v, said := p.versions[i], answers{}
		for s := range v.states {
			said.add(about, s)
		}
		switch {
		case !said.allow(send):
		case v.ended.IsZero() || l.inTheWay(gate, v.ended, asked):
			return 0
		default:
			return max(0, asked.Sub(v.ended))
		}
	}
	return 0
}

// stands is what stands of a person: which answers are right, the least
// revision, how many changes were acknowledged, the last of them when, and
// whether one more is on its way.
func (l *ledger) stands(p *person) (right [len(topics)]answers, revision int64, changes int, acked time.Time, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := p.versions[len(p.versions)-1]
	revision = -1
	for s, least := range last.states {
		for i, about := range topics {
			right[i].add(about, s)
		}
		if revision < 0 || least < revision {
			revision = least
		}
	}
	return right, revision, len(p.versions) - 1, last.acked, p.busy
}
