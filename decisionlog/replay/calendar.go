package replay

import (
	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/quiet"
)

// calendar is the period that a counter of that kind is in.
type calendar struct {
	label       int
	since, ends int64 // what is counted, in milliseconds

	zone  string // whose periods were looked up last
	spans [3]quiet.Span
}

// turn brings a counter to the period that an instant is in, by the clock of a
// zone. A greater label begins anew; a smaller one, of a user who has moved west,
// does not.
func (c *counter) turn(zone string, now int64) {
	if c.kind != sendgate.CapCalendar || zone == "" {
		return
	}
	own := &c.calendar
	if own.zone != zone || now < own.spans[1].Start.UnixMilli() || now >= own.spans[1].End.UnixMilli() {
		z, err := quiet.LoadZone(zone)
		if err != nil {
			z = nil // UTC; a gate knows the zones that it writes down
		}
		period, _ := c.latest.Cap()
		own.zone, own.spans = zone, z.Spans(period.Period, timeOf(now))
	}
	for _, s := range own.spans {
		from, till := s.Start.UnixMilli(), s.End.UnixMilli()
		switch {
		case s.Label == own.label:
			own.ends = till
		case s.Label > own.label && now >= from && now < till:
			own.since = max(from, own.ends)
			own.label, own.ends = s.Label, till
		}
	}
}
