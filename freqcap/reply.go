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
		size := 1 + 3*len(c.ask.Caps)
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

// readAnswer reads the numbers of one candidate: whether it was admitted, and
// three for each of its caps. It tells whether they make sense.
func readAnswer(list []any, caps []sendgate.BoundCap, a *sendgate.CapAnswer) bool {
	full := false
	a.Caps = make([]sendgate.CapState, len(caps))
	for i := range caps {
		used, okUsed := numberUpTo(list[1+3*i], math.MaxInt32)
		flag, okFlag := numberUpTo(list[2+3*i], 1)
		at, okAt := numberUpTo(list[3+3*i], latestMillis)
		if !okUsed || !okFlag || !okAt {
			return false
		}
		s := &a.Caps[i]
		s.Cap, s.Used, s.Full = caps[i].Cap, int(used), flag == 1
		if at > 0 {
			s.ResetsAt = time.UnixMilli(at).UTC()
		}
		full = full || s.Full
	}
	admitted, ok := numberUpTo(list[0], 1)
	a.Admitted = admitted == 1
	return ok && a.Admitted == !full
}

// numberUpTo reads a whole number from 0 to most.
func numberUpTo(v any, most int64) (int64, bool) {
	n, ok := v.(int64)
	return n, ok && n >= 0 && n <= most
}
