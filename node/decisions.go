package node

import (
	"time"

	"github.com/sendgate/sendgate"
)

// observer is who is told what the gate does: the metrics, and the decision log
// where one is kept.
func (n *Node) observer() sendgate.Observer {
	log := n.o.Decisions
	if log == nil {
		return n.metrics
	}
	count := func(name, help string, value func() int64) {
		n.metrics.Counter(name, help, func() float64 { return float64(value()) })
	}
	count("sendgate_decision_log_written_total", "Entries that were written to the decision log.", log.Written)
	count("sendgate_decision_log_dropped_total", "Entries that are missing in the decision log because too many were waiting to be written.", log.Dropped)
	count("sendgate_decision_log_failed_total", "Entries that are missing in the decision log because they could not be written.", log.Failed)
	return observers{n.metrics, log}
}

func (n *Node) reopenDecisions() {
	if n.o.Decisions != nil {
		n.o.Decisions.Reopen()
	}
}

// observers are told the same, one after the other.
type observers []sendgate.Observer

func (all observers) Decided(c *sendgate.Check, d *sendgate.Decision, mode sendgate.Mode) {
	for _, o := range all {
		o.Decided(c, d, mode)
	}
}

func (all observers) Settled(s *sendgate.Settlement) {
	for _, o := range all {
		o.Settled(s)
	}
}

func (all observers) StepTook(step sendgate.Step, checks int, took time.Duration) {
	for _, o := range all {
		o.StepTook(step, checks, took)
	}
}

func (all observers) ZoneFellBack() {
	for _, o := range all {
		o.ZoneFellBack()
	}
}
