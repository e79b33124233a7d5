package oracle

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// horizon is how far ahead an end of quiet is looked for.
const horizon = 8 * 24 * time.Hour

var dayNames = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// window is [start, end) in minutes of the wall clock, on the days that it
// starts on. With start > end it runs past midnight.
type window struct {
	start, end int
	days       [7]bool
}

// clockMinutes reads HH:MM. 24:00 is an end alone.
func clockMinutes(s string, end bool) (int, bool) {
	if len(s) != 5 || s[2] != ':' {
		return 0, false
	}
	for _, i := range []int{0, 1, 3, 4} {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	h, m := int(s[0]-'0')*10+int(s[1]-'0'), int(s[3]-'0')*10+int(s[4]-'0')
	if h == 24 && m == 0 && end {
		return 24 * 60, true
	}
	return h*60 + m, h < 24 && m < 60
}

func clockText(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// newWindow refuses what is no window: a time of day or day that there is not,
// no length, a day twice, all of the week.
func newWindow(start, end string, days []string) (w window, ok bool) {
	var okStart, okEnd bool
	w.start, okStart = clockMinutes(start, false)
	w.end, okEnd = clockMinutes(end, true)
	if !okStart || !okEnd || w.start == w.end {
		return w, false
	}
	for _, name := range days {
		d := slices.Index(dayNames[:], name)
		if d < 0 || w.days[d] {
			return w, false
		}
		w.days[d] = true
	}
	if len(days) == 0 {
		w.days = [7]bool{true, true, true, true, true, true, true}
	}
	always := w.start == 0 && w.end == 24*60 && w.dayNames() == nil
	return w, !always
}

// dayNames are the days, none for all of them.
func (w window) dayNames() (names []string) {
	for d, on := range w.days {
		if on {
			names = append(names, dayNames[d])
		}
	}
	if len(names) == 7 {
		return nil
	}
	return names
}

// covers tells whether a wall clock that shows this day and minute is inside.
func (w window) covers(day time.Weekday, minute int) bool {
	if w.start < w.end {
		return w.days[day] && w.start <= minute && minute < w.end
	}
	yesterday := (day + 6) % 7
	return w.days[day] && minute >= w.start || w.days[yesterday] && minute < w.end
}

// wall is a clock on the wall of some zone. It remembers for how long the
// zone's offset stays as it is, because it is read very often.
type wall struct {
	zone        *time.Location
	offset      int64 // seconds east
	from, until int64 // Unix seconds between which the offset is known
}

func (w *wall) read(at time.Time) (day time.Weekday, minute int) {
	now := at.Unix()
	if now < w.from || now >= w.until {
		local := at.In(w.zone)
		_, offset := local.Zone()
		start, end := local.ZoneBounds()
		w.offset, w.from, w.until = int64(offset), math.MinInt64, math.MaxInt64
		if !start.IsZero() {
			w.from = start.Unix()
		}
		if !end.IsZero() {
			w.until = end.Unix()
		}
	}
	minutes := (now + w.offset) / 60
	return time.Weekday((minutes/1440 + int64(time.Thursday)) % 7), int(minutes % 1440) // 1 January 1970 was a Thursday
}

// hours are all that makes one check quiet.
type hours struct {
	wall     *wall
	own      *window
	operator bool // allowed says when it is not quiet
	allowed  []window
}

func (o *Oracle) hours(u *user, category Category, channel string) (h hours) {
	zone := o.catalog.DefaultTimezone
	if q := u.quiet; q != nil {
		if q.zone != "" {
			zone = q.zone
		}
		if q.enabled {
			h.own = q.window
		}
	}
	h.wall = &wall{zone: o.zones.Load(zone)}
	for _, a := range category.AllowedHours {
		if len(a.Channels) > 0 && !slices.Contains(a.Channels, channel) {
			continue
		}
		w, _ := newWindow(a.Start, a.End, a.Days)
		h.operator, h.allowed = true, append(h.allowed, w)
	}
	return h
}

func (h hours) quiet(at time.Time) bool {
	day, minute := h.wall.read(at)
	covered := func(w window) bool { return w.covers(day, minute) }
	return h.own != nil && covered(*h.own) || h.operator && !slices.ContainsFunc(h.allowed, covered)
}

// end is the first later instant that is not quiet. Zones change their offsets
// on whole minutes, so that it is a whole minute too.
func (h hours) end(at time.Time) (time.Time, bool) {
	last := at.Add(horizon)
	for t := at.Truncate(time.Minute).Add(time.Minute); !t.After(last); t = t.Add(time.Minute) {
		if !h.quiet(t) {
			return t, true
		}
	}
	return time.Time{}, false
}
