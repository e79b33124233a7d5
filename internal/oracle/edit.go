package oracle

import (
	"maps"
	"time"
)

// Edit is the body of a PUT or PATCH of preferences, or the part of it that
// decides.
type Edit struct {
	Preferences []PreferenceEdit
	Quiet       *QuietEdit
	Caps        []CapEdit
	IfMatch     *int // a revision
}

// Nullable is a member that may be missing, null, or a value.
type Nullable[T any] struct {
	Given bool
	Value *T // nil is null
}

// Some is a member with a value, Null one that is null.
func Some[T any](v T) Nullable[T] { return Nullable[T]{true, &v} }

// Null is a member that is null.
func Null[T any]() Nullable[T] { return Nullable[T]{Given: true} }

// PreferenceEdit sets or unsets one setting.
type PreferenceEdit struct {
	Topic, Channel string
	Enabled        Nullable[bool]
}

// QuietEdit changes quiet hours by member; Remove is `quiet_hours: null`.
type QuietEdit struct {
	Remove               bool
	Enabled              *bool
	Start, End, Timezone *string
	Days                 Nullable[[]string]
}

// CapEdit sets or removes one cap.
type CapEdit struct {
	Category, Window string
	MaxCount         Nullable[int]
}

// The limits of a user's own cap.
const (
	shortestWindow = time.Second
	longestWindow  = 31 * 24 * time.Hour
)

// Edit changes a user's preferences, or says why not; then nothing is changed.
func (o *Oracle) Edit(id string, e Edit, now time.Time) *Refusal {
	u := o.user(id)
	if e.IfMatch != nil && *e.IfMatch != u.revision {
		return &Refusal{412, []string{"revision_mismatch"}}
	}
	settings, faults := o.editSettings(u.settings, e.Preferences)
	quiet, more := o.editQuiet(u.quiet, e.Quiet)
	faults = append(faults, more...)
	caps, more := o.editCaps(u.caps, e.Caps)
	faults = append(faults, more...)
	if len(faults) > 0 {
		return &Refusal{422, faults}
	}
	if !maps.Equal(settings, u.settings) || !maps.Equal(caps, u.caps) || !sameQuiet(quiet, u.quiet) {
		u.settings, u.quiet, u.caps = settings, quiet, caps
		u.saved(now)
	}
	return nil
}

func (o *Oracle) editSettings(old map[setting]bool, edits []PreferenceEdit) (map[setting]bool, []string) {
	settings, seen, faults := maps.Clone(old), map[setting]bool{}, []string(nil)
	for _, e := range edits {
		s := setting{e.Topic, e.Channel}
		topic, known := o.catalog.Topics[e.Topic]
		was, stored := old[s]
		same := stored && e.Enabled.Given && e.Enabled.Value != nil && *e.Enabled.Value == was
		switch {
		case seen[s] && !e.Enabled.Given:
			faults = append(faults, "duplicate_entry|missing_field")
		case seen[s]:
			faults = append(faults, "duplicate_entry")
		case same:
			// What a GET showed may always come back.
		case !known:
			faults = append(faults, "unknown_topic")
		case !o.catalog.hasChannel(e.Channel):
			faults = append(faults, "unknown_channel")
		case !e.Enabled.Given:
			faults = append(faults, "missing_field")
		case e.Enabled.Value == nil:
			delete(settings, s)
		case !*e.Enabled.Value && o.catalog.Categories[topic.Category].essential():
			faults = append(faults, "essential_topic")
		default:
			settings[s] = *e.Enabled.Value
		}
		seen[s] = true
	}
	return settings, faults
}

func (o *Oracle) editCaps(old map[capName]int, edits []CapEdit) (map[capName]int, []string) {
	caps, seen, faults := maps.Clone(old), map[capName]bool{}, []string(nil)
	for _, e := range edits {
		category, known := o.catalog.Categories[e.Category]
		window, ok := Length(e.Window)
		name := capName{e.Category, window}
		was, stored := old[name]
		same := stored && e.MaxCount.Given && e.MaxCount.Value != nil && *e.MaxCount.Value == was
		switch {
		case seen[name] && !e.MaxCount.Given:
			faults = append(faults, "duplicate_entry|missing_field")
		case seen[name]:
			faults = append(faults, "duplicate_entry")
		case same:
		case !known:
			faults = append(faults, "unknown_category")
		case !ok || window < shortestWindow || window > longestWindow:
			faults = append(faults, "invalid_cap")
		case !e.MaxCount.Given:
			faults = append(faults, "missing_field")
		case e.MaxCount.Value == nil:
			delete(caps, name)
		case category.UserCaps == nil || *e.MaxCount.Value < 0 || *e.MaxCount.Value > category.UserCaps.Ceiling:
			faults = append(faults, "invalid_cap")
		default:
			caps[name] = *e.MaxCount.Value
		}
		seen[name] = true
	}
	return caps, faults
}

func (o *Oracle) editQuiet(old *quietHours, e *QuietEdit) (*quietHours, []string) {
	if e == nil || *e == (QuietEdit{}) {
		return old, nil // no member is named
	}
	if e.Remove {
		return nil, nil
	}
	q := quietHours{}
	if old != nil {
		q = *old
	}
	if e.Timezone != nil {
		if !o.zones.Has(*e.Timezone) {
			return nil, []string{"invalid_timezone"}
		}
		q.zone = *e.Timezone
	}
	if e.Start != nil || e.End != nil || e.Days.Given {
		w, fault := e.window(q.window)
		if fault != "" {
			return nil, []string{fault}
		}
		// Hours that are given for the first time are meant to be kept, unless
		// it is said that they are not.
		q.enabled = q.enabled || q.window == nil
		q.window = &w
	}
	if e.Enabled != nil {
		q.enabled = *e.Enabled
	}
	if q.window != nil && q.zone == "" || q.window == nil && q.enabled {
		return nil, []string{"missing_field"}
	}
	return &q, nil
}

// window is the old one, if any, with the members that are given.
func (e *QuietEdit) window(old *window) (w window, fault string) {
	var start, end string
	var days []string
	if old != nil {
		start, end, days = clockText(old.start), clockText(old.end), old.dayNames()
	}
	if e.Start != nil {
		start = *e.Start
	}
	if e.End != nil {
		end = *e.End
	}
	if e.Days.Given {
		days = nil
		if e.Days.Value != nil {
			days = *e.Days.Value
		}
	}
	if old == nil && (e.Start == nil || e.End == nil) {
		return w, "missing_field"
	}
	w, ok := newWindow(start, end, days)
	if !ok {
		return w, "invalid_quiet_hours"
	}
	return w, ""
}

func sameQuiet(a, b *quietHours) bool {
	if a == nil || b == nil {
		return a == b
	}
	sameWindow := a.window == nil && b.window == nil || a.window != nil && b.window != nil && *a.window == *b.window
	return a.enabled == b.enabled && a.zone == b.zone && sameWindow
}
