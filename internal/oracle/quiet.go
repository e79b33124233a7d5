package oracle

import (
	"fmt"
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

// hours are all that makes one check quiet.
type hours struct {
	zone     *time.Location
	own      *window
	operator bool // allowed says when it is not quiet
	allowed  []window
}

func (o *Oracle) hours(u *user, category Category, channel string) hours {
	h := hours{zone: o.zones.Load(o.catalog.DefaultTimezone)}
	if q := u.quiet; q != nil {
		if q.zone != "" {
			h.zone = o.zones.Load(q.zone)
		}
		if q.enabled {
			h.own = q.window
		}
	}
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
	local := at.In(h.zone)
	day, minute := local.Weekday(), local.Hour()*60+local.Minute()
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

// WeekOrder puts days into the order of the week, as a document has them; all
// seven are no days. What is no day comes first, so that it is not lost.
func WeekOrder(days []string) []string {
	if len(days) == 0 || len(days) == 7 {
		return nil
	}
	sorted := slices.Clone(days)
	slices.SortFunc(sorted, func(a, b string) int { return slices.Index(dayNames[:], a) - slices.Index(dayNames[:], b) })
	return sorted
}
