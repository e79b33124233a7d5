package node

import (
	"context"

	"github.com/sendgate/sendgate/limits"
)

// readLimits reads the limits of single values, and makes what keeps them up to
// date. Where they cannot be read within two seconds the gate starts all the
// same, with the catalog's, and looks again every second.
func (n *Node) readLimits(ctx context.Context) *limits.Table {
	table := limits.NewTable()
	n.limits = limits.NewFollower(limits.FollowerOptions{Documents: n.o.Store, Table: table, Log: n.o.Log, Now: n.o.Now})
	n.metrics.Gauge("sendgate_value_limits_age_seconds", "How long ago the limits of single values were last read, or the gate started if they never were.",
		func() float64 { return n.limits.Age().Seconds() })
	n.metrics.Gauge("sendgate_value_limits", "Values that have limits of their own.",
		func() float64 { return float64(table.Len()) })
	_ = n.limits.Look(ctx) // which says so itself
	return table
}
