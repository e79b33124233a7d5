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

// saidRefuted is all that presumed.lua says where the record is another.
const saidRefuted = "refuted"

// readJudged reads what judge.lua said of some items. Anything that has another
// form than its head says is an error, and no part of it is believed.
func readJudged(reply any, items []*item) error {
	if reply == saidRefuted && items[0].record != "" {
		for _, it := range items {
			it.judged.flag = refuted
		}
		return nil
	}
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
		it.judged.at = at
		rest, ok := it.read(list)
		if !ok {
			return fmt.Errorf("%w: %v for %d caps", errReply, list, len(it.counters))
		}
		list = rest
	}
	if len(list) > 0 {
		return fmt.Errorf("%w: %d numbers are left over", errReply, len(list))
	}
	return nil
}

// What judge.lua says of a cap.
const (
	capFull = iota + 1
	capLapses
	capFresh
	capFreshLapses // both
)

// read reads the numbers of one item from the head of a list: whether it was
// admitted, and what is said of each of its counters. It tells whether they make
// sense.
func (it *item) read(list []any) (rest []any, ok bool) {
	if len(list) == 0 {
		return nil, false
	}
	if it.judged.flag, ok = numberUpTo(list[0], passed); !ok {
		return nil, false
	}
	list = list[1:]
	full := false
	it.judged.states, it.judged.fresh = make([]sendgate.CapState, len(it.caps)), make([]bool, len(it.caps))
	for i := range it.counters {
		s, flag, n := readState(list)
		if n == 0 {
			return nil, false
		}
		list = list[n:]
		full = full || flag == capFull
		if i < len(it.caps) {
			c := &it.ask.Caps[it.caps[i]]
			s.Cap, s.SubjectID, s.Values = c.Cap, c.SubjectID, c.Values
			it.judged.states[i], it.judged.fresh[i] = s, flag == capFresh || flag == capFreshLapses
		}
	}
	return list, (it.judged.flag == denied) == full
}

// readState reads what is said of one counter: n numbers, none if they make no
// sense.
func readState(list []any) (s sendgate.CapState, flag int64, n int) {
	if len(list) < 3 {
		return s, 0, 0
	}
	used, okUsed := numberUpTo(list[0], math.MaxInt32)
	flag, okFlag := numberUpTo(list[1], capFreshLapses)
	resets, okResets := instantOf(list[2])
	if !okUsed || !okFlag || !okResets {
		return s, 0, 0
	}
	s = sendgate.CapState{Used: int(used), Full: flag == capFull, ResetsAt: resets}
	if flag != capLapses && flag != capFreshLapses {
		return s, flag, 3
	}
	if len(list) < 5 {
		return s, 0, 0
	}
	var okLapses, okReturns bool
	s.LapsesAt, okLapses = instantOf(list[3])
	s.ReturnsAt, okReturns = instantOf(list[4])
	if !okLapses || !okReturns || s.LapsesAt.IsZero() {
		return s, 0, 0
	}
	return s, flag, 5
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
