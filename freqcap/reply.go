package freqcap

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sendgate/sendgate"
)

// latestMillis is the end of the year 9999, past which an instant cannot be
// written as RFC 3339.
const latestMillis = 253_402_300_799_999

var errReply = errors.New("the cap script gave an answer that cannot be right")

// readReply reads what the script said of some candidates: see charge.lua for
// its form. Anything else is an error, and no part of it is believed.
func readReply(reply any, asked []candidate) ([]sendgate.CapAnswer, error) {
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: a %T", errReply, reply)
	}
	answers := make([]sendgate.CapAnswer, len(asked))
	for i, c := range asked {
		size := 1 + capNumbers*len(c.ask.Caps)
		if len(list) < size {
			return nil, fmt.Errorf("%w: it ends early", errReply)
		}
		if !readAnswer(list[:size], c.ask.Caps, &answers[i]) {
			return nil, fmt.Errorf("%w: %v for %d caps", errReply, list[:size], len(c.ask.Caps))
		}
		list = list[size:]
	}
	if len(list) > 0 {
		return nil, fmt.Errorf("%w: %d numbers are left over", errReply, len(list))
	}
	return answers, nil
}

// capNumbers is how many numbers the script says of each cap.
const capNumbers = 5

// readAnswer reads the numbers of one candidate: whether it was admitted, and
// capNumbers for each of its caps. It tells whether they make sense.
func readAnswer(list []any, caps []sendgate.BoundCap, a *sendgate.CapAnswer) bool {
	full := false
	a.Caps = make([]sendgate.CapState, len(caps))
	for i := range caps {
		n := list[1+capNumbers*i:]
		used, okUsed := numberUpTo(n[0], math.MaxInt32)
		flag, okFlag := numberUpTo(n[1], 1)
		resets, okResets := instantOf(n[2])
		lapses, okLapses := instantOf(n[3])
		returns, okReturns := instantOf(n[4])
		if !okUsed || !okFlag || !okResets || !okLapses || !okReturns {
			return false
		}
		s := &a.Caps[i]
		*s = sendgate.CapState{
			Cap: caps[i].Cap, Used: int(used), Full: flag == 1, ResetsAt: resets, LapsesAt: lapses, ReturnsAt: returns,
		}
		full = full || s.Full
	}
	admitted, ok := numberUpTo(list[0], 1)
	a.Admitted = admitted == 1
	return ok && a.Admitted == !full
}

// instantOf reads an instant in milliseconds; 0 is none.
func instantOf(v any) (at time.Time, ok bool) {
	millis, ok := numberUpTo(v, latestMillis)
	if ok && millis > 0 {
		at = time.UnixMilli(millis).UTC()
	}
	return at, ok
}

// numberUpTo reads a whole number from 0 to most.
func numberUpTo(v any, most int64) (int64, bool) {
	n, ok := v.(int64)
	return n, ok && n >= 0 && n <= most
}
