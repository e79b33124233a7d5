package sendgate

import (
	"context"
	"iter"
	"slices"
)

// chunkSize is how many checks of a list go through the pipeline together, and
// so how many commands one time limit has to do for.
const chunkSize = 100

// Result is the decision on one check of a list, or the error that stands in
// its place.
type Result struct {
	Decision Decision
	Err      error // *Error or Errors: this check was wrong, the others are unharmed
}

// Decide answers one check. The error is *Error or Errors: the check was
// wrong, and nothing was charged. It allocates nothing where the check is
// answered in process.
func (g *Gate) Decide(ctx context.Context, check Check) (d Decision, err error) {
	r := g.begin(Reserve, 0)
	r.check = check
	if err = r.check.Validate(r.catalog); err == nil {
		r.room(1)
		r.admit(&r.check, 0)
		r.run(ctx, r.batch)
		g.observer.Decided(&r.check, &r.cases[0].decision, Reserve)
		d = r.cases[0].decision
	}
	g.end(r)
	return d, err
}

// DecideAll answers a list of checks in order. A check that is wrong fails
// alone. Slots are given in the order of the list. If take is more than 0, all
// checks have to be of one user; the first so many that may go are allowed, and
// those after them that may go are suppressed with ReasonNotTaken, uncharged.
func (g *Gate) DecideAll(ctx context.Context, checks []Check, mode Mode, take int) []Result {
	results := make([]Result, 0, len(checks))
	for some := range g.DecideParts(ctx, checks, mode, take) {
		results = append(results, some...)
	}
	return results
}

// DecideParts answers a list of checks as DecideAll does, and hands out the
// results part by part, in order, as they are decided: up to 100 at once. A part
// is not to be kept beyond its turn. Checks after the part at which the caller
// stops are not decided, and nothing is charged for them.
func (g *Gate) DecideParts(ctx context.Context, checks []Check, mode Mode, take int) iter.Seq[[]Result] {
	return func(yield func([]Result) bool) {
		r := g.begin(mode, take)
		results := make([]Result, min(len(checks), chunkSize))
		for some := range slices.Chunk(checks, chunkSize) {
			part := results[:len(some)]
			r.decide(ctx, some, part, mode)
			if !yield(part) {
				break
			}
		}
		g.end(r)
	}
}

// decide answers a part of a list.
func (r *round) decide(ctx context.Context, checks []Check, results []Result, mode Mode) {
	r.room(len(checks))
	for i := range checks {
		results[i] = Result{Err: checks[i].Validate(r.catalog)}
		if results[i].Err == nil {
			r.admit(&checks[i], i)
		}
	}
	r.run(ctx, r.batch)
	for i := range checks {
		if results[i].Err == nil {
			results[i].Decision = r.cases[i].decision
			r.observer.Decided(&checks[i], &results[i].Decision, mode)
		}
	}
}

// begin takes a round, new or used, for checks under the catalog in force.
func (g *Gate) begin(mode Mode, take int) *round {
	r, ok := g.rounds.Get().(*round)
	if !ok {
		r = &round{}
	}
	r.Gate, r.catalog, r.at = g, g.Catalog(), g.now()
	r.reserve, r.taking, r.take = mode == Reserve, take > 0, take
	return r
}

// end lets a round be used again. It forgets what it was about. One that
// panicked does not get here.
func (g *Gate) end(r *round) {
	r.room(0)
	r.check, r.catalog = Check{}, nil
	g.rounds.Put(r)
}

// room makes a round ready for so many checks, and forgets those it had.
func (r *round) room(n int) {
	clear(r.cases)
	clear(r.batch)
	clear(r.open[:cap(r.open)])
	if cap(r.cases) < n {
		r.cases, r.batch, r.open = make([]checkCase, n), make([]*checkCase, 0, n), make([]*checkCase, 0, n)
	}
	r.cases, r.batch = r.cases[:n], r.batch[:0]
}

// admit takes a check, the i-th of those that there is room for, into the batch.
func (r *round) admit(check *Check, i int) {
	r.cases[i].open(check, r.catalog, r.at)
	r.batch = append(r.batch, &r.cases[i])
}
