package storm_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// restFor is how long somebody who has changed their mind is left alone: for
// so long what a gate answers is by that change or an earlier one. It is longer
// than the promise, so that a gate that breaks it is seen to. With ten thousand
// people it leaves room for 1,600 changes a second.
const restFor = promised + time.Second

// person is somebody who opts out and in again.
type person struct {
	id   string
	in   bool      // what they are now, as far as was acknowledged
	rest time.Time // until when they are left alone
}

// people are those who change their minds. Whoever is taken is nobody else's
// until put back.
type people struct {
	mu      sync.Mutex
	rand    *rand.Rand
	free    []*person
	resting []*person // whose rest ends first is in front
}

func newPeople(n int) *people {
	p := &people{rand: rand.New(rand.NewPCG(1, 1))}
	for i := range n {
		p.free = append(p.free, &person{id: fmt.Sprintf("person_%d", i), in: true})
	}
	return p
}

// take takes somebody at random; nil if everybody has just changed their mind.
func (p *people) take() *person {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for len(p.resting) > 0 && !now.Before(p.resting[0].rest) {
		p.free, p.resting = append(p.free, p.resting[0]), p.resting[1:]
	}
	if len(p.free) == 0 {
		return nil
	}
	i, last := p.rand.IntN(len(p.free)), len(p.free)-1
	taken := p.free[i]
	p.free[i], p.free = p.free[last], p.free[:last]
	return taken
}

// putBack puts somebody back, to be taken again in a while.
func (p *people) putBack(one *person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.rest = time.Now().Add(restFor)
	p.resting = append(p.resting, one)
}
