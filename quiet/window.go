package quiet

import "time"

// Window is a stretch of the wall clock, [Start, End), on some days of the
// week. Where Start is later than End it runs past midnight; Days are the days
// on which it starts. The zero value is empty, and not valid.
//
// A Window says nothing about a zone: the same one is read on whatever clock
// hangs on the wall where the person is.
type Window struct {
	Start, End TimeOfDay
	Days       Days
}

// NewWindow reads a window as it is written down, and validates it. The error
// is an [*Error].
func NewWindow(start, end string, days []string) (Window, error) {
	var w Window
	var err error
	if w.Start, err = parseTimeOfDay(fieldStart, start); err != nil {
		return Window{}, err
	}
	if w.End, err = parseTimeOfDay(fieldEnd, end); err != nil {
		return Window{}, err
	}
	if w.Days, err = ParseDays(days); err != nil {
		return Window{}, err
	}
	if err := w.Validate(); err != nil {
		return Window{}, err
	}
	return w, nil
}

// Validate returns an [*Error] for a window that cannot be meant: values out of
// range, 24:00 as a start (it is 00:00 of the next day), a start that is the end
// (nothing, or everything?), and the whole of every day. Several windows can
// cover the week together though each is valid; see [CoverWeek].
func (w Window) Validate() error {
	switch {
	case !w.Start.legal():
		return &Error{fieldStart, "The start is no time of a day."}
	case !w.End.legal():
		return &Error{fieldEnd, "The end is no time of a day."}
	case w.Days > allDays:
		return &Error{fieldDays, "The days hold something that is not a day of the week."}
	case w.Start == endOfDay:
		return &Error{fieldStart, "24:00 is legal as an end only; write 00:00 of the day after."}
	case w.Start == w.End:
		return &Error{fieldEnd, "The end is the same as the start."}
	case CoverWeek([]Window{w}):
		return &Error{fieldEnd, "The window covers the whole week and would never end."}
	}
	return nil
}

// CoverWeek reports whether the windows together leave no minute of the week
// open, so that hours made of them would never end.
func CoverWeek(ws []Window) bool {
	for at := int64(0); at < 7*secondsPerDay; {
		left := leftOf(ws, readClock(at))
		if left == 0 {
			return false
		}
		at += left
	}
	return true
}

// reading is what a person sees on the wall: the day of the week, and the time
// in seconds since midnight, from 0 to 86399.
type reading struct {
	day    time.Weekday
	second int64
}

// readClock reads a clock that shows local seconds since 1970-01-01 00:00 local
// time, which may be negative.
func readClock(local int64) reading {
	date := local / secondsPerDay
	second := local % secondsPerDay
	if second < 0 { // division rounds toward zero, a calendar does not
		date--
		second += secondsPerDay
	}
	// 1970-01-01 was a Thursday.
	day := (date + int64(time.Thursday)) % 7
	if day < 0 {
		day += 7
	}
	return reading{time.Weekday(day), second}
}

// toMidnight is how many seconds the day has left, at least 1.
func (r reading) toMidnight() int64 { return secondsPerDay - r.second }

// left returns for how many seconds more the window lasts if the clock shows r
// and runs on evenly, 0 outside it. Windows that are not valid are empty or end
// early, never negative.
func (w Window) left(r reading) int64 {
	start, end := w.Start.seconds(), w.End.seconds()
	switch {
	case start < end:
		if r.second >= start && r.second < end && w.Days.has(r.day) {
			return end - r.second
		}
	case start > end:
		if r.second >= start && w.Days.has(r.day) {
			return max(0, secondsPerDay+end-r.second)
		}
		if r.second < end && w.Days.has((r.day+6)%7) { // it started on the date before
			return end - r.second
		}
	}
	return 0
}

// untilStart returns in how many seconds, at least 1, the window starts next if
// the clock shows r and runs on evenly. ok is false if it has no day to start on.
func (w Window) untilStart(r reading) (seconds int64, ok bool) {
	for ahead := range 8 { // the same day a week on, if today's start is past
		wait := int64(ahead)*secondsPerDay + w.Start.seconds() - r.second
		if wait > 0 && w.Days.has((r.day+time.Weekday(ahead))%7) {
			return wait, true
		}
	}
	return 0, false
}

// leftOf returns the longest that one of the windows lasts from here, 0 outside
// all of them.
func leftOf(ws []Window, r reading) int64 {
	var left int64
	for _, w := range ws {
		left = max(left, w.left(r))
	}
	return left
}
