package quiet

import (
	"math"
	"time"
)

// Horizon is how far ahead [Hours.NextOpen] looks. It is a week, after which
// windows repeat, and a day more, because a change of the clocks can make the
// week longer than it seems.
const Horizon = 8 * 24 * time.Hour

const (
	horizonSeconds = int64(Horizon / time.Second)
	forever        = math.MaxInt64
)

// Hours are quiet inside any of the Quiet windows and, if there are Allowed
// windows, outside all of them. The zero value is never quiet. Quiet are
// somebody's own quiet hours and Allowed, for example, the hours in which the
// law lets one advertise; the windows are expected to be valid, and to be few,
// as each step of a search looks at all of them.
type Hours struct {
	Quiet   []Window
	Allowed []Window
}

// NextOpen returns the first instant, not before at, that is not quiet on the
// clock of the zone. ok is false if there is none up to and including at +
// [Horizon]. The hours are quiet at the instant at exactly if ok is false or
// open is after at; open is at itself otherwise.
//
// It depends on its arguments alone. open is in the location of at.
func (h Hours) NextOpen(at time.Time, z *Zone) (open time.Time, ok bool) {
	if len(h.Quiet) == 0 && len(h.Allowed) == 0 {
		return at, true
	}
	// Edges and offsets are whole seconds, so all instants of a second are alike.
	first := at.Unix()
	w := newWalk(h, z, first)
	for w.unix-first <= horizonSeconds {
		wait := w.wait()
		if wait == 0 {
			if w.unix == first {
				return at, true
			}
			return time.Unix(w.unix, 0).In(at.Location()), true
		}
		w.advance(wait)
	}
	return time.Time{}, false
}

// walk is a search on its way along the zone's offset changes.
//
// While the offset is constant the wall clock runs evenly, and the next edge of
// a window is found by subtraction. An edge that would lie beyond the next
// change of the offset may never be shown, or may have been passed, so the walk
// then goes to the change only and reads the clock anew. No instant is ever
// computed from a wall-clock time, which may exist twice or not at all.
//
// Each step ends at an edge or at a change. With n windows there are at most
// two edges per window and day, 18n within the horizon, and few changes.
type walk struct {
	hours  Hours
	zone   *Zone
	unix   int64 // where it stands, in seconds since 1970-01-01 00:00 UTC
	offset int64 // of the zone's clock there, in seconds
	steady int64 // the offset holds up to this instant; 0 is not yet looked up
}

func newWalk(h Hours, z *Zone, unix int64) walk {
	return walk{hours: h, zone: z, unix: unix, offset: z.offsetAt(unix)}
}

// wait returns how long, in seconds, it stays quiet from here if the offset
// stays what it is, 0 if it is not quiet.
func (w *walk) wait() int64 {
	r := readClock(w.unix + w.offset)
	if left := leftOf(w.hours.Quiet, r); left > 0 {
		return left
	}
	if len(w.hours.Allowed) == 0 || leftOf(w.hours.Allowed, r) > 0 {
		return 0
	}
	wait := horizonSeconds + 1
	for _, a := range w.hours.Allowed {
		if s, ok := a.untilStart(r); ok {
			wait = min(wait, s)
		}
	}
	return wait
}

// advance goes wait seconds on, at least 1, or to the end of the constant
// offset if that comes first.
func (w *walk) advance(wait int64) {
	if w.steady == 0 {
		w.steady = w.zone.steadyUntil(w.unix)
	}
	if w.unix+wait < w.steady {
		w.unix += wait
		return
	}
	w.unix = w.steady
	w.offset = w.zone.offsetAt(w.unix)
	w.steady = 0
}
