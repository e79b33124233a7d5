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

// readJudged reads what judge.lua said of some items. Anything that has another
// form than its head says is an error, and no part of it is believed.
func readJudged(reply any, items []*item) error {
	list, ok := reply.([]any)
	if !ok || len(list) == 0 {
		return fmt.Errorf("%w: a %T", errReply, reply)
	}
	at, ok := numberUpTo(list[0], latestMillis)
	if !ok {
		return fmt.Errorf("%w: now is %v", errReply, list[0])
	}
	list = list[1:]
	for _, it := range items {
		size := 1 + capNumbers*len(it.counters)
		if len(list) < size {
			return fmt.Errorf("%w: it ends early", errReply)
		}
		it.judged.at = at
		if !it.read(list[:size]) {
			return fmt.Errorf("%w: %v for %d caps", errReply, list[:size], len(it.counters))
		}
		list = list[size:]
	}
	if len(list) > 0 {
		return fmt.Errorf("%w: %d numbers are left over", errReply, len(list))
	}
	return nil
}

// capNumbers is how many numbers judge.lua says of each cap.
const capNumbers = 5

// read reads the numbers of one item: whether it was admitted, and capNumbers for
// each of its counters. It tells whether they make sense.
func (it *item) read(list []any) bool {
	full := false
	it.judged.states = make([]sendgate.CapState, len(it.caps))
	for i := range it.counters {
		n := list[1+capNumbers*i:]
		used, okUsed := numberUpTo(n[0], math.MaxInt32)
		flag, okFlag := numberUpTo(n[1], 1)
		resets, okResets := instantOf(n[2])
		lapses, okLapses := instantOf(n[3])
		returns, okReturns := instantOf(n[4])
		if !okUsed || !okFlag || !okResets || !okLapses || !okReturns {
			return false
		}
		full = full || flag == 1
		if i < len(it.caps) {
			c := &it.ask.Caps[it.caps[i]]
			it.judged.states[i] = sendgate.CapState{
				Cap: c.Cap, SubjectID: c.SubjectID, Values: c.Values,
				Used: int(used), Full: flag == 1, ResetsAt: resets, LapsesAt: lapses, ReturnsAt: returns,
			}
		}
	}
	flag, ok := numberUpTo(list[0], passed)
	it.judged.flag = flag
	return ok && (flag == denied) == full
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
