package sendgate

import (
	"context"
	"fmt"
	"time"
)

// pipeline is one check from end to end: the steps, in order. Each is given
// the checks of a list that are still open; a single check is a list of one.
var pipeline = [...]struct {
	step Step
	run  func(r *round, ctx context.Context, open []*checkCase)
}{
	{StepGlobal, (*round).global},         // holds known in process; all there is for an essential check
	{StepFilter, (*round).filter},         // settings known in process
	{StepPreference, (*round).preference}, // the exact record
	{StepQuietHours, (*round).quietHours}, // pure computation
	{StepCaps, (*round).caps},             // one atomic script
}

// unverifiableRetry is how long after a check that could not be verified it is
// worth asking again: a breaker has let a probe through by then.
const unverifiableRetry = 5 * time.Second

// round is one list of checks on its way through the pipeline, under one
// catalog, and the room that it needs.
type round struct {
	*Gate
	catalog *Catalog
	at      time.Time // the instant that quiet hours are judged at
	reserve bool
	taking  bool // only so many are allowed
	take    int  // how many yet

	check Check // of a single check
	cases []checkCase
	batch []*checkCase // of these, those that go through the pipeline
	open  []*checkCase // of these, those that the running step is given
}

// run decides a list of checks. Those that presume something of a record which was
// not proved go through the pipeline once more, by what is read this time.
func (r *round) run(ctx context.Context, batch []*checkCase) {
	r.pass(ctx, batch)
	if again := r.unproved(batch); len(again) > 0 {
		r.pass(ctx, again)
	}
	for _, c := range batch {
		c.close()
	}
}

// pass takes a list of checks through the pipeline. Timing, the policy of
// failures and the trace are here and nowhere else.
func (r *round) pass(ctx context.Context, batch []*checkCase) {
	open, began := r.open, SystemClock()
	for _, p := range pipeline {
		open = open[:0]
		for _, c := range batch {
			if !c.ended || c.explain || c.waiting && p.step == StepCaps {
				c.err, c.finding, c.judged = nil, "", false
				open = append(open, c)
			}
		}
		if len(open) == 0 {
			break
		}
		p.run(r, ctx, open)
		ended := SystemClock()
		took := ended.Sub(began)
		began = ended
		r.observer.StepTook(p.step, len(open), took)
		for _, c := range open {
			c.settle(p.step, took)
		}
	}
}

// unverifiable is the policy where the running step could not tell: the
// category's, or those of the caps that could not be judged. One cap that has to
// be kept is enough.
func (c *checkCase) unverifiable(step Step) UnverifiablePolicy {
	if step != StepCaps {
		return c.category.OnUnverifiable
	}
	for i := range c.unjudged {
		if c.unjudged[i].OnUnverifiable == UnverifiableSuppress {
			return UnverifiableSuppress
		}
	}
	return UnverifiableAllow
}

// endUnverified follows the policy where a step could not tell: what
// the overlay knows of an opt-out is obeyed, and otherwise the check ends, or
// goes on without that knowledge. What the filter says is a reason to end it
// where the policy would end it anyway.
func (c *checkCase) endUnverified(step Step) {
	reason, no := c.saysNo()
	policy, byFilter := c.unverifiable(step), false
	if !no && policy == UnverifiableSuppress {
		reason, byFilter = c.filterSaysNo()
	}
	switch {
	case no:
		c.end(Suppress, reason)
	case byFilter:
		c.decision.Exact = false
		c.end(Suppress, reason)
		c.passesAt(c.at.Add(unverifiableRetry)) // the filter may be old
	case policy == UnverifiableSuppress:
		c.end(Suppress, ReasonUnverifiable)
		c.passesAt(c.at.Add(unverifiableRetry))
	default:
		c.reason, c.decision.Uncapped = ReasonUnverified, c.unjudged
	}
}

// settle draws the consequence of what a step left behind.
func (c *checkCase) settle(step Step, took time.Duration) {
	if c.judged && !c.closed {
		c.decision.Step = step
	}
	if c.err != nil && !c.ended {
		c.decision.Step, c.decision.Degraded = step, true
		c.endUnverified(step)
	}
	c.closed = c.closed || c.ended
	if c.explain {
		if c.err != nil {
			c.finding = fmt.Sprintf("cannot tell: %v", c.err)
		}
		c.findings = append(c.findings, Finding{Step: step, Finding: c.finding, Took: took})
	}
}
