package node

import (
	"context"
	"time"
)

// probeEvery is how often a dependency is asked that is thought to be down.
const probeEvery = time.Second

// probe asks what is thought to be down, so that it is found out when it is not
// any more, also by a gate that nobody sends checks.
func (n *Node) probe(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for i, g := range n.guards {
			if g.Open() {
				_ = g.Do(ctx, n.probes[i]) // the guard draws the consequence
			}
		}
	}
}

// askStore asks for the record of nobody.
func (n *Node) askStore(ctx context.Context) error {
	_, err := n.o.Store.Get(ctx, "sendgate probe")
	return err
}
