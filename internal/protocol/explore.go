package protocol

import (
	"fmt"
	"strings"
)

// Result is what an exploration has come to.
type Result struct {
	States int // that were explored
	Depth  int // steps of the longest run that was needed to reach one
	// Broken is the promise that is broken in the nearest state that breaks
	// one, "" if there is none.
	Broken string
	// Trace are the steps that lead there, each with the state after it. There
	// is no way with fewer steps, but that those of a fair run at the end do not
	// count.
	Trace []string
}

// String is the result in lines to read.
func (r Result) String() string {
	if r.Broken == "" {
		return fmt.Sprintf("%d states, up to %d steps deep", r.States, r.Depth)
	}
	return fmt.Sprintf("broken after %d states: %s\n%s", r.States, r.Broken, strings.Join(r.Trace, "\n"))
}

// node is a state that was reached: from which one, and by which of the steps
// that may be taken there.
type node struct {
	from   int32
	choice uint8
}

// waiting is a state whose steps have not been taken yet.
type waiting struct {
	state state
	node  int32
}

// explorer goes through all states that can be reached, breadth first.
type explorer struct {
	*model
	visited map[state]struct{}
	restful map[state]struct{} // from where a fair run is known to go well
	nodes   []node
	level   []waiting // all are as many steps from the start
	result  Result
}

// Explore goes through all runs that a configuration allows, and stops at the
// first broken promise, or when there are more states than it may explore.
func Explore(c Config) (Result, error) {
	x := &explorer{model: &model{c}, visited: map[state]struct{}{}, restful: map[state]struct{}{}}
	x.reach(x.start(), node{from: -1})
	for len(x.level) > 0 && x.result.Broken == "" {
		level := x.level
		x.level = nil
		for _, w := range level {
			choice := uint8(0)
			x.steps(&w.state, func(_ step, next state) {
				x.reach(next, node{from: w.node, choice: choice})
				choice++
			})
			if x.result.Broken != "" {
				break
			}
		}
		if len(x.visited) > c.Most {
			return Result{States: len(x.visited), Depth: x.result.Depth}, fmt.Errorf("more than %d states", c.Most)
		}
		if len(x.level) > 0 {
			x.result.Depth++
		}
	}
	x.result.States = len(x.visited)
	return x.result, nil
}

// reach looks at a state, unless it was visited before.
func (x *explorer) reach(s state, n node) {
	if x.result.Broken != "" {
		return
	}
	if _, known := x.visited[s]; known {
		return
	}
	x.visited[s] = struct{}{}
	x.nodes = append(x.nodes, n)
	at := int32(len(x.nodes) - 1)
	x.level = append(x.level, waiting{s, at})
	broken := x.broken(&s)
	resting := broken == ""
	if resting {
		broken = x.rest(s, x.restful, nil)
	}
	if broken != "" {
		x.result.Broken = broken
		x.result.Trace = x.trace(at, resting)
	}
}

// trace takes the steps to a node once more, and those of a fair run from there
// if it is that which breaks a promise.
func (x *explorer) trace(at int32, resting bool) (lines []string) {
	var choices []uint8
	for n := x.nodes[at]; n.from >= 0; n = x.nodes[n.from] {
		choices = append(choices, n.choice)
	}
	s := x.start()
	tell := func(done step, s *state) {
		lines = append(lines, fmt.Sprintf("%3d. %-62s %s", len(lines)+1, done, s))
	}
	for i := len(choices) - 1; i >= 0; i-- {
		var next state
		n := uint8(0)
		x.steps(&s, func(done step, reached state) {
			if n == choices[i] {
				tell(done, &reached)
				next = reached
			}
			n++
		})
		s = next
	}
	if resting {
		lines = append(lines, "     and from here on without faults:")
		x.rest(s, map[state]struct{}{}, tell)
	}
	return lines
}
