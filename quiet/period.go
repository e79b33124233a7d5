package quiet

import (
	"strconv"
	"time"
)

// Period is a stretch of the calendar.
type Period uint8

// The periods. A week is one of ISO 8601: it begins on Monday, and the week of a
// year's first Thursday is its first.
const (
	Day Period = iota + 1
	Week
	Month
)

// String is the period's name: `day`, `week` or `month`.
func (p Period) String() string {
	if p < Day || p > Month {
		return strconv.Itoa(int(p))
	}
	return [...]string{"day", "week", "month"}[p-Day]
}

// Span is one period in a zone. A day there may have 23, 24 or 25 hours, or
// others. It begins at the first instant at which the zone's clock shows its
// date, or a later one, and ends where the next begins: where the clock is put
// back over midnight, the hour that comes twice is of the later day both times.
type Span struct {
	Label      int // 20261224 of a day, 202652 of a week, 202612 of a month; later ones are greater
	Start, End time.Time
}

// Spans returns the period that an instant is in, with the one before it and the
// one after it.
func (z *Zone) Spans(p Period, at time.Time) [3]Span {
	unix := at.Unix()
	local := unix + z.offsetAt(unix)
	first := p.first(floorDiv(local, secondsPerDay))
	if z.startOf(p.next(first)) <= unix { // the clock shows an earlier day again
		first = p.next(first)
	}
	var spans [3]Span
	days := [...]int64{p.first(first - 1), first, p.next(first), p.next(p.next(first))}
	for i := range spans {
		spans[i] = Span{Label: p.label(days[i]), Start: time.Unix(z.startOf(days[i]), 0).UTC(), End: time.Unix(z.startOf(days[i+1]), 0).UTC()}
	}
	return spans
}

// startOf is the first instant, in Unix seconds, at which the zone's clock shows
// a day, counted from 1970-01-01, or a later one.
func (z *Zone) startOf(day int64) int64 {
	midnight := day * secondsPerDay
	// No offset is as long as a day, so that this is within two of midnight.
	at := midnight - secondsPerDay
	for {
		offset := z.offsetAt(at)
		until := z.steadyUntil(at)
		if begins := max(at, midnight-offset); begins < until {
			return begins
		}
		at = until
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// date is a day's date.
func date(day int64) time.Time { return time.Unix(day*secondsPerDay, 0).UTC() }

// first is the first day of the period that a day is in.
func (p Period) first(day int64) int64 {
	switch p {
	case Week:
		return day - (int64(date(day).Weekday())+6)%7
	case Month:
		return day - int64(date(day).Day()) + 1
	default:
		return day
	}
}

// next is the first day of the period after the one that begins on a day.
func (p Period) next(first int64) int64 {
	switch p {
	case Week:
		return first + 7
	case Month:
		return p.first(first + 31)
	default:
		return first + 1
	}
}

func (p Period) label(first int64) int {
	switch d := date(first); p {
	case Week:
		year, week := d.ISOWeek()
		return year*100 + week
	case Month:
		return d.Year()*100 + int(d.Month())
	default:
		return (d.Year()*100+int(d.Month()))*100 + d.Day()
	}
}
