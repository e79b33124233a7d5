package client

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/sendgate/sendgate"
)

// Stats are what a client has counted since it was made.
type Stats struct {
	Requests   uint64 // of checks, sent to gates
	Answered   uint64 // checks that a gate has decided
	Refused    uint64 // checks that were wrong
	Allowed    uint64 // by the client itself
	Suppressed uint64 // by the client itself
	Deferred   uint64 // by the client itself

	// Why the client decided itself.
	Unreachable, TimedOut, Failing, Garbled, Tripped, Busy uint64

	CatalogAt time.Time // when a gate last gave its catalog; zero if none has
}

type counts struct {
	requests, decidedByGate, refused atomic.Uint64
	own                              [3]atomic.Uint64 // by verdict
	causes                           [len(causes)]atomic.Uint64
}

// answered counts a check that a gate has answered.
func (n *counts) answered(refusal error) {
	if refusal != nil {
		n.refused.Add(1)
		return
	}
	n.decidedByGate.Add(1)
}

// decided counts a decision of the client's own.
func (n *counts) decided(d *Decision) {
	n.own[d.Verdict].Add(1)
	for i, cause := range causes {
		if errors.Is(d.Cause, cause) {
			n.causes[i].Add(1)
			return
		}
	}
}

// Stats tells what was counted. Two counts need not be of the same instant.
func (c *Client) Stats() Stats {
	n := &c.counts
	s := Stats{
		Requests: n.requests.Load(), Answered: n.decidedByGate.Load(), Refused: n.refused.Load(),
		Allowed: n.own[sendgate.Allow].Load(), Suppressed: n.own[sendgate.Suppress].Load(), Deferred: n.own[sendgate.Defer].Load(),
	}
	for i, into := range [...]*uint64{&s.Unreachable, &s.TimedOut, &s.Failing, &s.Garbled, &s.Tripped, &s.Busy} {
		*into = n.causes[i].Load()
	}
	if at := c.catalog.at.Load(); at != nil {
		s.CatalogAt = *at
	}
	return s
}
