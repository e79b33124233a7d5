package freqcap

import (
	"github.com/sendgate/sendgate"
)

// item is what one run of the script judges of a candidate: its part of one
// subject.
type item struct {
	*candidate
	*part
	look   bool // charges nothing
	judged judged
}

// judged is what the script said of an item.
type judged struct {
	at     int64
	flag   int64
	states []sendgate.CapState // of the part's caps
	fresh  []bool              // of these, which a short hold has a slot of
	err    error
}

// onlyLooks is told the script in the place of a hold. A short hold is negative.
const onlyLooks = -1

// What the script says of an item: see judge.lua. It is refuted if that is all
// there is to say.
const (
	denied = iota
	admitted
	charged
	passed
	refuted
)

// unit is what one run of the script judges: items of one subject, in order.
type unit struct {
	key   string
	items []*item
}

// record is the key of the record of which the items presume something, and what
// that is; both are empty if they do not.
func (u *unit) record() (key, presumed string) {
	return u.items[0].record, u.items[0].ask.Presumed
}

// byKey brings the items of each subject together, in their order.
func byKey(items []*item) []*item {
	first := make(map[string]int, len(items)) // the place of a subject's group
	var groups [][]*item
	for _, it := range items {
		g, seen := first[it.key]
		if !seen {
			g = len(groups)
			first[it.key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], it)
	}
	if len(groups) == len(items) {
		return items
	}
	sorted := make([]*item, 0, len(items))
	for _, g := range groups {
		sorted = append(sorted, g...)
	}
	return sorted
}

// fitting is how many from the head of a list go into one call: at least one.
func fitting(items []*item) int {
	caps := 0
	for i, it := range items {
		if caps += len(it.counters); i > 0 && (caps > maxCaps || i == maxItems) {
			return i
		}
	}
	return len(items)
}

// unitsOf cuts a list, in which the items of each subject stand together, into
// units. No subject has two.
func unitsOf(items []*item) []unit {
	var units []unit
	for start, end := 0, 0; start < len(items); start = end {
		key := items[start].key
		for end < len(items) && items[end].key == key {
			end++
		}
		units = append(units, unit{key: key, items: items[start:end]})
	}
	return units
}

// arguments are what the script is given beside the key, laid out as the head of
// judge.lua says.
func (u *unit) arguments(take int, token string) []any {
	number := make(map[string]int) // of a counter, from 1
	var counters, rest []any
	for _, it := range u.items {
		hold := it.ask.Hold.Milliseconds()
		if it.look {
			hold = onlyLooks
		} else if it.spansSubjects() {
			hold = -shortHold.Milliseconds()
		}
		rest = append(rest, it.id, it.channel, hold, len(it.counters))
		for i := range it.counters {
			k := &it.counters[i]
			if number[k.name] == 0 {
				counters = append(counters, k.name, k.span, k.limit)
				if k.tally != "" {
					counters = append(counters, k.tally)
				}
				number[k.name] = len(number) + 1
			}
			room := noLimit + 1
			if i < len(it.caps) {
				room = it.ask.Caps[it.caps[i]].Room
			}
			rest = append(rest, number[k.name], room)
		}
	}
	head := []any{max(take, 0), token, len(number)}
	if record, presumed := u.record(); record != "" {
		head = append(head, presumed)
	}
	return append(append(head, counters...), rest...)
}

func (u *unit) fail(err error) {
	for _, it := range u.items {
		it.judged = judged{err: err}
	}
}
