package node

import (
	"fmt"
	"time"

	"github.com/sendgate/sendgate/api"
	"github.com/sendgate/sendgate/prefs"
)

// pendingLimit is how long a change may be pending before readiness says so:
// 30 s are usual.
const pendingLimit = 2 * time.Minute

// startLimit is how long a gate that was just started is held back by a Redis
// that is down. After that it is as ready as one that was there before, so that
// a rollout during an outage does not take the fleet away: it verifies what it
// knows by the store, and follows the categories' policy.
const startLimit = 15 * time.Second

// starting tells whether the gate has not been following the change stream yet,
// and is to be waited for.
func (n *Node) starting() bool {
	return !n.overlay.WasLive() && n.o.Now().Sub(n.started) < startLimit
}

// swept is told what a sweep has found. While what is pending cannot be read,
// something may be: its age is counted on.
func (n *Node) swept(backlog prefs.Backlog, err error) {
	now := n.o.Now()
	n.mu.Lock()
	if err == nil {
		n.pendingAge, n.sweptAt = backlog.Oldest, now
	} else if n.sweptAt.IsZero() {
		n.sweptAt = n.started
	}
	n.sweepFault = err
	age := n.pendingAge + now.Sub(n.sweptAt)
	n.mu.Unlock()
	n.metrics.Pending(age, backlog.Records)
}

// ready says what is missing or degraded. A gate is ready for traffic as soon
// as it follows the change stream; what fails later degrades it, and its
// answers say so, but takes it away from nobody.
func (n *Node) ready() []api.Part {
	n.mu.Lock()
	refused, pendingAge, sweepFault, sweptAt := n.refused, n.pendingAge, n.sweepFault, n.sweptAt
	n.mu.Unlock()

	parts := []api.Part{{Name: "feed", State: api.PartOK}, {Name: "catalog", State: api.PartOK}, {Name: "propagation", State: api.PartOK}}
	switch {
	case n.overlay.Live():
	case n.overlay.WasLive():
		parts[0].State, parts[0].Detail = api.PartDegraded, "the change stream is not being followed: opt-outs known in process are verified"
	case n.starting():
		parts[0].State, parts[0].Detail = api.PartMissing, "the change stream has not been followed yet"
	default:
		parts[0].State, parts[0].Detail = api.PartDegraded, "the change stream has not been followed since the start: every check is verified"
	}
	if refused != nil {
		parts[1].State, parts[1].Detail = api.PartDegraded, "the last reload was refused: "+refused.Error()
	}
	switch {
	case !n.pendingKnown.Load():
		parts[2].State, parts[2].Detail = api.PartMissing, "the changes that are pending in the store have not been read yet"
	case sweepFault != nil:
		parts[2].State = api.PartDegraded
		parts[2].Detail = fmt.Sprintf("what is pending in the store has not been read for %v: %v", n.o.Now().Sub(sweptAt).Round(time.Second), sweepFault)
	case pendingAge > pendingLimit:
		parts[2].State, parts[2].Detail = api.PartDegraded, "a change has been pending for "+pendingAge.Round(time.Second).String()
	}
	if n.filter != nil {
		parts = append(parts, n.filterPart())
	}
	for _, g := range n.guards {
		part := api.Part{Name: g.Name(), State: api.PartOK}
		if g.Open() {
			part.State, part.Detail = api.PartDegraded, "it has failed repeatedly and is not asked for a while"
		}
		parts = append(parts, part)
	}
	if n.eviction != nil {
		parts = append(parts, n.evictionPart())
	}
	return parts
}
