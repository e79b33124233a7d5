package prefs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sendgate/sendgate"
)

// Edit is what a caller wants of a user's preferences. What is not named stays
// as it is.
type Edit struct {
	Settings   []SettingEdit
	QuietHours *QuietHoursEdit
	Caps       []CapEdit
	// GlobalUnsubscribe and Holds are read-only: a caller may send back what
	// it was given, and anything else is refused.
	GlobalUnsubscribe *bool
	Holds             *[]sendgate.Hold
}

// SettingEdit switches one topic on one channel; nil unsets it.
type SettingEdit struct {
	Topic, Channel string
	Enabled        *bool
}

// CapEdit sets the user's own cap for a category and a window; nil removes it.
type CapEdit struct {
	Category string
	Window   sendgate.Duration
	MaxCount *int
}

// MaxUserCaps is how many caps of their own a user may have.
const MaxUserCaps = 32

// apply makes the edit on a record, and says what it has changed. An entry
// that asks for what is stored already is no change and is never refused, so
// that a body that was read can be written back, whatever the catalog says by
// then.
func (e *Edit) apply(r *Record, catalog *sendgate.Catalog) ([]Diff, error) {
	var errs sendgate.Errors
	e.checkReadOnly(&r.Preferences, &errs)
	diffs := e.applySettings(r, catalog, &errs)
	diffs = append(diffs, e.QuietHours.apply(r, &errs)...)
	diffs = append(diffs, e.applyCaps(r, catalog, &errs)...)
	return diffs, errs.Err()
}

func (e *Edit) checkReadOnly(p *sendgate.Preferences, errs *sendgate.Errors) {
	if e.GlobalUnsubscribe != nil && *e.GlobalUnsubscribe != p.Global() {
		errs.Add(sendgate.Errorf(sendgate.CodeReadOnlyField, "global_unsubscribe", "is read-only: use unsubscribe-all or resubscribe"))
	}
	if e.Holds != nil && !sameHolds(*e.Holds, p.Holds) {
		errs.Add(sendgate.Errorf(sendgate.CodeReadOnlyField, "holds", "is read-only: use unsubscribe-all or resubscribe"))
	}
}

func sameHolds(a, b []sendgate.Hold) bool {
	return slices.EqualFunc(a, b, func(x, y sendgate.Hold) bool {
		at := x.At.Equal(y.At)
		x.At, y.At = time.Time{}, time.Time{}
		return at && x == y
	})
}

func (e *Edit) applySettings(r *Record, catalog *sendgate.Catalog, errs *sendgate.Errors) (diffs []Diff) {
	seen := map[sendgate.Setting]bool{}
	for i, s := range e.Settings {
		path := fmt.Sprintf("preferences[%d]", i)
		key := sendgate.Setting{Topic: s.Topic, Channel: s.Channel}
		if seen[key] {
			errs.Add(sendgate.Errorf(sendgate.CodeDuplicateEntry, path, "topic %q on channel %q is named twice", sendgate.Clip(s.Topic), sendgate.Clip(s.Channel)))
			continue
		}
		seen[key] = true
		was, stored := r.Settings[key]
		same := stored == (s.Enabled != nil) && (!stored || was == *s.Enabled)
		// What is stored may stay and may go, whatever the catalog says by now.
		mayBe := stored && (same || s.Enabled == nil)
		if fault := settingFault(s, path, catalog); fault != nil && !mayBe {
			errs.Add(fault)
			continue
		}
		if same {
			continue
		}
		d := Diff{Kind: DiffPreference, Topic: s.Topic, Channel: s.Channel}
		if stored {
			d.Before = jsonOf(was)
		}
		if s.Enabled == nil {
			delete(r.Settings, key)
		} else {
			if r.Settings == nil {
				r.Settings = sendgate.Settings{}
			}
			r.Settings[key] = *s.Enabled
			d.After = jsonOf(*s.Enabled)
		}
		diffs = append(diffs, d)
	}
	return diffs
}

// settingFault says why a setting cannot be made under the catalog.
func settingFault(s SettingEdit, path string, catalog *sendgate.Catalog) *sendgate.Error {
	topic, ok := catalog.Topic(s.Topic)
	switch {
	case !ok:
		return sendgate.Errorf(sendgate.CodeUnknownTopic, path+".topic", "the catalog has no topic %q", sendgate.Clip(s.Topic))
	case !catalog.HasChannel(s.Channel):
		return sendgate.Errorf(sendgate.CodeUnknownChannel, path+".channel", "the catalog has no channel %q", sendgate.Clip(s.Channel))
	case topic.Category.Essential && s.Enabled != nil && !*s.Enabled:
		return sendgate.Errorf(sendgate.CodeEssentialTopic, path+".enabled", "topic %q is essential and cannot be switched off", s.Topic)
	}
	return nil
}

func (e *Edit) applyCaps(r *Record, catalog *sendgate.Catalog, errs *sendgate.Errors) (diffs []Diff) {
	type key struct {
		category string
		window   sendgate.Duration
	}
	seen := map[key]bool{}
	for i, c := range e.Caps {
		path := fmt.Sprintf("frequency_caps[%d]", i)
		if k := (key{c.Category, c.Window}); seen[k] {
			errs.Add(sendgate.Errorf(sendgate.CodeDuplicateEntry, path, "category %q with window %s is named twice", sendgate.Clip(c.Category), c.Window))
			continue
		} else {
			seen[k] = true
		}
		at := slices.IndexFunc(r.Caps, func(u sendgate.UserCap) bool { return u.Category == c.Category && u.Window == c.Window })
		if at >= 0 && c.MaxCount != nil && r.Caps[at].MaxCount == *c.MaxCount {
			continue
		}
		if fault := capFault(c, path, catalog); fault != nil && (at < 0 || c.MaxCount != nil) {
			errs.Add(fault)
			continue
		}
		d := Diff{Kind: DiffCap, Category: c.Category, Window: c.Window.String()}
		switch {
		case at >= 0:
			d.Before = jsonOf(r.Caps[at].MaxCount)
			r.Caps = slices.Delete(r.Caps, at, at+1)
		case c.MaxCount == nil:
			continue
		}
		if c.MaxCount != nil {
			d.After = jsonOf(*c.MaxCount)
			r.Caps = append(r.Caps, sendgate.UserCap{Category: c.Category, Window: c.Window, MaxCount: *c.MaxCount})
		}
		diffs = append(diffs, d)
	}
	slices.SortFunc(r.Caps, func(a, b sendgate.UserCap) int {
		return cmp.Or(cmp.Compare(a.Category, b.Category), cmp.Compare(a.Window, b.Window))
	})
	if len(diffs) > 0 && len(r.Caps) > MaxUserCaps {
		errs.Add(sendgate.Errorf(sendgate.CodeInvalidCap, "frequency_caps", "a user has at most %d caps", MaxUserCaps))
	}
	return diffs
}

// capFault says why a user's cap cannot be set under the catalog.
func capFault(c CapEdit, path string, catalog *sendgate.Catalog) *sendgate.Error {
	category, ok := catalog.Category(c.Category)
	window := time.Duration(c.Window)
	switch {
	case !ok:
		return sendgate.Errorf(sendgate.CodeUnknownCategory, path+".category", "the catalog has no category %q", sendgate.Clip(c.Category))
	case window < sendgate.MinCapWindow || window > sendgate.MaxCapWindow:
		return sendgate.Errorf(sendgate.CodeInvalidCap, path+".window", "a window is from 1s to 31d")
	case c.MaxCount == nil:
		return nil
	case !category.UserCaps:
		return sendgate.Errorf(sendgate.CodeInvalidCap, path+".category", "category %q takes no caps of users", c.Category)
	case *c.MaxCount < 0 || *c.MaxCount > category.UserCapCeiling:
		return sendgate.Errorf(sendgate.CodeInvalidCap, path+".max_count", "must be from 0 to %d", category.UserCapCeiling)
	}
	return nil
}
