package oracle_test

import (
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// wait moves the clock: a little, a lot, to the edge of a window, or to where
// something that a user is told to wait for ends.
func (h *history) wait() {
	h.t.Helper()
	now := h.now()
	span := func(most time.Duration) time.Duration { return time.Duration(h.g.Int64N(int64(most))) }
	switch h.g.IntN(9) {
	case 0:
		h.moveTo(now.Add(time.Millisecond))
	case 1:
		window, _ := oracle.Length(pick(h.g.Rand, h.g.windows))
		h.moveTo(now.Add(window + time.Duration(h.g.IntN(3)-1)*time.Millisecond))
	case 2:
		h.moveTo(now.Add(span(3 * time.Second)))
	case 3:
		h.moveTo(now.Add(span(time.Hour)))
	case 4:
		h.moveTo(now.Add(span(12 * time.Hour)))
	case 5:
		h.moveTo(now.Add(span(48 * time.Hour)))
	case 6:
		h.moveTo(now.Truncate(time.Minute).Add(time.Minute + time.Duration(h.g.IntN(3)-1)*time.Millisecond))
	case 7:
		h.zoneChange(60 * 24 * time.Hour)
	case 8:
		// Within a millisecond nothing changes.
		h.moveTo(h.exactly().Add(time.Duration(h.g.IntN(300)) * time.Microsecond))
	}
}

// zoneChange moves the clock to about the next offset change of a user's zone,
// if that comes soon enough.
func (h *history) zoneChange(soon time.Duration) {
	h.t.Helper()
	name := h.g.zone[h.g.user()]
	if name == "" {
		name = pick(h.g.Rand, zoneNames)
	}
	_, change := h.now().In(zones.Load(name)).ZoneBounds()
	if change.IsZero() || change.Sub(h.now()) > soon {
		return
	}
	h.moveTo(change.Add(pick(h.g.Rand, []time.Duration{
		-time.Minute, -time.Millisecond, 0, time.Millisecond, time.Minute, -time.Hour, time.Hour, -30 * time.Minute,
	})))
}

// nearZoneChange begins a history some hours before the offset of a zone
// changes, and has the users live there.
func (h *history) nearZoneChange() {
	h.t.Helper()
	name := pick(h.g.Rand, zoneNames)
	_, change := h.now().In(zones.Load(name)).ZoneBounds()
	if change.IsZero() || change.Sub(h.now()) > 200*24*time.Hour {
		return
	}
	h.moveTo(change.Add(-time.Duration(h.g.Int64N(int64(6 * time.Hour)))).Truncate(time.Millisecond))
	for _, user := range h.g.users {
		h.g.zone[user] = name
	}
}
