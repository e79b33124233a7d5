package sendgate

import (
	"slices"
	"time"

	"github.com/sendgate/sendgate/quiet"
)

// counting reads what becomes of the slots that an allow takes.
func (b *catalogBuilder) counting(path string, spec CategorySpec, cat *Category) {
	onDelivery := false
	choose(b, path+".count", spec.Count, &onDelivery, choices[bool]{{"on_allow", false}, {"on_delivery", true}})
	switch {
	case !onDelivery && spec.Hold != "":
		b.fault(path+".hold", "is for categories that count on_delivery")
	case onDelivery:
		cat.Hold = b.duration(path+".hold", spec.Hold, DefaultHold, MinHold, MaxHold)
	}
}

// duration reads a length of time between two others; an empty one is the
// default.
func (b *catalogBuilder) duration(field, text string, byDefault, least, most time.Duration) time.Duration {
	if text == "" {
		return byDefault
	}
	d, err := ParseDuration(text)
	switch {
	case err != nil:
		b.fault(field, "%v", err)
	case time.Duration(d) < least || time.Duration(d) > most:
		b.fault(field, "must be from %s to %s", Duration(least), Duration(most))
	default:
		return time.Duration(d)
	}
	return byDefault
}

func (b *catalogBuilder) cap(path string, spec CapSpec, cat *Category) {
	c := Cap{By: spec.By, Subject: spec.Subject, OnUnverifiable: cat.OnUnverifiable}
	choose(b, path+".kind", spec.Kind, &c.Kind, choices[CapKind]{{"rolling", CapRolling}, {"buckets", CapBuckets}, {"calendar", CapCalendar}})
	choose(b, path+".on_unverifiable", spec.OnUnverifiable, &c.OnUnverifiable, unverifiablePolicies)
	b.fields(path, spec)
	b.window(path, spec, &c, cat.Hold)
	switch {
	case spec.Limit == nil:
		b.fault(path, "a limit is required")
	case *spec.Limit < 0 || *spec.Limit > MaxCapLimit:
		b.fault(path+".limit", "must be from 0 to %d", MaxCapLimit)
	default:
		c.Limit = *spec.Limit
	}
	b.keep(path+".keep", spec.Keep, &c)
	if (c.Window != 0 || c.Kind == CapCalendar) && slices.ContainsFunc(cat.Caps, func(o Cap) bool { return c.sameCounter(&o) }) {
		b.fault(path, "another cap of this category counts by the same fields over the same window")
	}
	cat.Caps = append(cat.Caps, c)
	if by := slices.Sorted(slices.Values(c.By)); c.Subject == "" && len(by) > 0 &&
		!slices.ContainsFunc(cat.keyedBy, func(other []Field) bool { return slices.Equal(by, other) }) {
		cat.keyedBy = append(cat.keyedBy, by)
	}
}

// fields looks at whose notifications a cap counts, and by what.
func (b *catalogBuilder) fields(path string, spec CapSpec) {
	if spec.By == nil {
		b.fault(path, "by is required; [] counts everything")
	}
	for i, f := range spec.By {
		if !f.Known() {
			b.fault(index(path+".by", i), "%q is no field of a check that a cap can be keyed by", Clip(string(f)))
		}
		if slices.Contains(spec.By[:i], f) {
			b.fault(index(path+".by", i), "%q is named twice", f)
		}
	}
	if spec.Subject != "" && !spec.Subject.IsSubject() {
		b.fault(path+".subject", "%q is no id of a check whose notifications can be counted, such as household_id", Clip(string(spec.Subject)))
	}
}

// window reads over what a cap counts.
func (b *catalogBuilder) window(path string, spec CapSpec, c *Cap, hold time.Duration) {
	if spec.Window == "" {
		b.fault(path, "a window is required")
		return
	}
	if c.Kind == CapCalendar {
		choose(b, path+".window", spec.Window, &c.Period, choices[quiet.Period]{{"day", quiet.Day}, {"week", quiet.Week}, {"month", quiet.Month}})
	} else {
		c.Window = b.capWindow(path+".window", spec.Window)
	}
	b.buckets(path, spec, c)
	if c.Kind != CapRolling {
		c.Remember = b.duration(path+".remember", spec.Remember, DefaultRemember, max(MinCapWindow, hold), MaxRemember)
	} else if spec.Remember != "" {
		b.fault(path+".remember", "is for buckets and calendar: a rolling cap knows an id for as long as it counts")
	}
}

func (b *catalogBuilder) capWindow(field, text string) time.Duration {
	window, err := ParseDuration(text)
	switch {
	case err != nil:
		b.fault(field, "%v", err)
	case time.Duration(window) < MinCapWindow || time.Duration(window) > MaxCapWindow:
		b.fault(field, "must be from 1s to 31d")
	}
	return time.Duration(window)
}

// buckets reads into how many parts a window is cut.
func (b *catalogBuilder) buckets(path string, spec CapSpec, c *Cap) {
	switch {
	case c.Kind != CapBuckets && spec.Buckets != nil:
		b.fault(path+".buckets", "is for the kind buckets")
	case c.Kind != CapBuckets:
	case spec.Buckets != nil && (*spec.Buckets < 1 || *spec.Buckets > MaxBuckets):
		b.fault(path+".buckets", "must be from 1 to %d", MaxBuckets)
		return
	case spec.Buckets != nil:
		c.Buckets = *spec.Buckets
	case c.Window <= 24*time.Hour:
		c.Buckets = dayBuckets
	default:
		c.Buckets = weekBuckets
	}
	if n := time.Duration(c.Buckets); n > 0 && c.Window%(n*time.Millisecond) != 0 {
		b.fault(path+".buckets", "a window of %s cannot be cut into %d parts of whole milliseconds", Duration(c.Window), c.Buckets)
	}
}

func (b *catalogBuilder) keep(path string, spec *KeepSpec, c *Cap) {
	if spec == nil {
		return
	}
	c.KeptFor = PriorityHigh
	choose(b, path+".for", spec.For, &c.KeptFor, choices[Priority]{{"normal", PriorityNormal}, {"high", PriorityHigh}})
	if spec.For == "" {
		b.fault(path, "for is required: normal or high")
	}
	if c.Kept = spec.Slots; spec.Slots < 1 || spec.Slots > c.Limit {
		b.fault(path+".slots", "must be from 1 to the limit, %d", c.Limit)
	}
}
