package quiet

import (
	"slices"
	"time"
)

// Days is a set of days of the week; the bit of a day is 1 << time.Weekday. The
// zero value is every day, as is the set of all seven.
type Days uint8

const allDays Days = 1<<7 - 1

// week lists the days as people write them down, Monday first.
var week = [7]struct {
	name string
	day  time.Weekday
}{
	{"mon", time.Monday}, {"tue", time.Tuesday}, {"wed", time.Wednesday}, {"thu", time.Thursday},
	{"fri", time.Friday}, {"sat", time.Saturday}, {"sun", time.Sunday},
}

// ParseDays reads names from "mon" to "sun", in any order. No names are every
// day; all seven are the same value, so that equal sets compare equal. The error
// is an [*Error] for "days": for a name that is not one of the seven, and for a
// day named twice, which is more likely a slip for another day than meant.
func ParseDays(names []string) (Days, error) {
	var d Days
	for _, name := range names {
		bit := dayBit(name)
		if bit == 0 {
			return 0, &Error{fieldDays, quoted(name) + " is not a day; the days are mon, tue, wed, thu, fri, sat and sun."}
		}
		if d&bit != 0 {
			return 0, &Error{fieldDays, quoted(name) + " is named twice."}
		}
		d |= bit
	}
	if d == allDays {
		return 0, nil
	}
	return d, nil
}

// dayBit returns the bit of the day of that name, 0 if there is none.
func dayBit(name string) Days {
	for _, w := range week {
		if w.name == name {
			return 1 << w.day
		}
	}
	return 0
}

// Names returns the names of the days, "mon" first, and nil for every day.
func (d Days) Names() []string {
	if d.every() {
		return nil
	}
	var names []string
	for _, w := range week {
		if d.has(w.day) {
			names = append(names, w.name)
		}
	}
	return slices.Clip(names)
}

func (d Days) every() bool { return d == 0 || d == allDays }

// has reports whether the set holds a weekday between Sunday and Saturday.
func (d Days) has(day time.Weekday) bool { return d == 0 || d&(1<<day) != 0 }
