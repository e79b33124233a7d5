package oracle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// charge is one notification under one cap.
type charge struct {
	id string
	at time.Time
}

// counter is one cap as it applies to one check.
type counter struct {
	by     []string
	window time.Duration
	limit  int
	key    string // of the list of charges
}

// CapUse is how far a cap is used.
type CapUse struct {
	By     []string
	Window time.Duration
	Limit  int
	Used   int
	Room   time.Time // of a cap that stops the check: when it has room; zero for never, or if it does not stop it
}

// value is the check's value of a field that a cap is keyed by.
func (c Check) value(field, category string) string {
	if name, ok := strings.CutPrefix(field, "attributes."); ok {
		return c.Attributes[name]
	}
	return map[string]string{
		"category": category, "topic": c.Topic, "channel": c.Channel, "campaign_id": c.CampaignID, "sender_id": c.SenderID,
		"creative_id": c.CreativeID, "household_id": c.HouseholdID, "device_id": c.DeviceID,
	}[field]
}

// counters are the caps that a check falls under: the category's, with the
// user's own in the place of the one that counts the same, then the user's
// others.
func (o *Oracle) counters(u *user, c Check) (counters []counter) {
	name := o.catalog.Topics[c.Topic].Category
	category := o.catalog.Categories[name]
	add := func(by []string, window time.Duration, limit int) {
		parts := []string{window.String()}
		for _, field := range by {
			v := c.value(field, name)
			if v == "" {
				return // a cap keyed by what the check does not carry does not apply
			}
			parts = append(parts, field, v)
		}
		key, _ := json.Marshal(parts)
		counters = append(counters, counter{by: by, window: window, limit: limit, key: string(key)})
	}
	taken := map[time.Duration]bool{}
	for _, cap := range category.Caps {
		window, _ := Length(cap.Window)
		limit := cap.Limit
		if own, ok := u.caps[capName{name, window}]; ok && slices.Equal(cap.By, []string{"category"}) {
			limit, taken[window] = own, true
		}
		add(cap.By, window, limit)
	}
	if category.UserCaps != nil {
		for own, most := range u.caps {
			if own.category == name && !taken[own.window] {
				add([]string{"category"}, own.window, most)
			}
		}
	}
	return counters
}

// live are the charges that count at an instant: one that is exactly as old as
// the window has left.
func (u *user) live(c counter, at time.Time) (live []charge) {
	for _, ch := range u.charges[c.key] {
		if at.Sub(ch.at) < c.window {
			live = append(live, ch)
		}
	}
	return live
}

func (u *user) charged(c counter, id string, at time.Time) bool {
	return slices.ContainsFunc(u.live(c, at), func(ch charge) bool { return ch.id == id })
}

// passes tells whether a cap lets a notification through: it has been charged
// already, or there is room.
func (u *user) passes(c counter, id string, at time.Time) bool {
	return u.charged(c, id, at) || len(u.live(c, at)) < c.limit
}

func (u *user) allPass(counters []counter, id string, at time.Time) bool {
	return !slices.ContainsFunc(counters, func(c counter) bool { return !u.passes(c, id, at) })
}

// charge charges what has not been charged yet.
func (u *user) charge(counters []counter, id string, at time.Time) {
	for _, c := range counters {
		if !u.charged(c, id, at) {
			u.charges[c.key] = append(u.live(c, at), charge{id, at})
		}
	}
}

func (u *user) uses(counters []counter, id string, at time.Time) (uses []CapUse) {
	for _, c := range counters {
		live := u.live(c, at)
		use := CapUse{By: c.by, Window: c.window, Limit: c.limit, Used: len(live)}
		if !u.passes(c, id, at) && c.limit > 0 {
			// Lists are in the order of their instants: when this one leaves,
			// one less than the limit is left.
			use.Room = live[len(live)-c.limit].at.Add(c.window)
		}
		uses = append(uses, use)
	}
	return uses
}

// opening is the first instant, from the given one on, that is not quiet and
// at which all caps let the notification through, as far as is known now.
// Between two charges leaving nothing changes about caps, so that only those
// instants are looked at. Of caps, instants before now show what now shows.
func (u *user) opening(h hours, ignoreQuiet bool, counters []counter, id string, from, now time.Time) (time.Time, bool) {
	for t := from; ; {
		if !ignoreQuiet && h.quiet(t) {
			end, ok := h.end(t)
			if !ok {
				return time.Time{}, false
			}
			t = end
			continue
		}
		if u.allPass(counters, id, latest(t, now)) {
			return t, true
		}
		var next time.Time
		for _, c := range counters {
			for _, ch := range u.live(c, latest(t, now)) {
				if leaves := ch.at.Add(c.window); next.IsZero() || leaves.Before(next) {
					next = leaves
				}
			}
		}
		if next.IsZero() {
			return time.Time{}, false
		}
		t = next
	}
}
