package freqcap

import (
	"slices"

	"github.com/sendgate/sendgate"
)

// candidate is an ask on its way to Redis.
type candidate struct {
	ask      *sendgate.CapAsk
	place    int       // of the ask in the list that was handed in
	counters []counter // of its caps, in their order
}

// unit is what one run of the script judges: asks of one user, in order.
type unit struct {
	user       sendgate.UserID
	candidates []candidate
	answers    []sendgate.CapAnswer // one for each candidate, once judged
	err        error                // why it was not
}

// byUser brings the asks of each user together, in their order.
func byUser(list []candidate) []candidate {
	first := make(map[sendgate.UserID]int, len(list)) // the place of a user's group
	var groups [][]candidate
	for _, c := range list {
		g, seen := first[c.ask.User]
		if !seen {
			g = len(groups)
			first[c.ask.User] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], c)
	}
	if len(groups) == len(list) {
		return list
	}
	sorted := make([]candidate, 0, len(list))
	for _, g := range groups {
		sorted = append(sorted, g...)
	}
	return sorted
}

// fitting is how many from the head of a list go into one call: at least one.
func fitting(list []candidate) int {
	caps := 0
	for i, c := range list {
		if caps += len(c.counters); i > 0 && caps > maxCaps {
			return i
		}
	}
	return len(list)
}

// unitsOf cuts a list, in which the asks of each user stand together, into
// units. No user has two.
func unitsOf(list []candidate) []unit {
	var units []unit
	for start, end := 0, 0; start < len(list); start = end {
		user := list[start].ask.User
		for end < len(list) && list[end].ask.User == user {
			end++
		}
		units = append(units, unit{user: user, candidates: list[start:end]})
	}
	return units
}

// command is the Redis command that has the script judge the unit. It is laid
// out as the head of charge.lua says.
func (u *unit) command(name, script string) []any {
	number := make(map[string]int) // of a key among the keys, from 1
	var keys, windows, rest []any
	for _, c := range u.candidates {
		mode := "reserve"
		if c.ask.Look {
			mode = "look"
		}
		rest = append(rest, c.ask.NotificationID, mode, len(c.counters))
		for i, k := range c.counters {
			if number[k.key] == 0 {
				keys, windows = append(keys, k.key), append(windows, k.window)
				number[k.key] = len(keys)
			}
			rest = append(rest, number[k.key], c.ask.Caps[i].Limit)
		}
	}
	return slices.Concat([]any{name, script, len(keys)}, keys, windows, rest)
}

// settle hands a unit's answers out. lost is why it was not put to Redis, if it
// was not.
func (u *unit) settle(lost error, answers []sendgate.CapAnswer) {
	if u.answers == nil && u.err == nil {
		u.err = lost
	}
	for i, c := range u.candidates {
		if u.err != nil {
			answers[c.place].Err = u.err
		} else {
			answers[c.place] = u.answers[i]
		}
	}
}
