package oracle

import "time"

// Check is one question.
type Check struct {
	NotificationID string            `json:"notification_id"`
	User           string            `json:"user_id"`
	Topic          string            `json:"topic"`
	Channel        string            `json:"channel"`
	CampaignID     string            `json:"campaign_id,omitempty"`
	SenderID       string            `json:"sender_id,omitempty"`
	CreativeID     string            `json:"creative_id,omitempty"`
	HouseholdID    string            `json:"household_id,omitempty"`
	DeviceID       string            `json:"device_id,omitempty"`
	Attributes     map[string]string `json:"attributes,omitempty"`
	Priority       string            `json:"priority,omitempty"`
}

// Decision is the answer.
type Decision struct {
	Verdict, Reason, Category string
	DeliverAt, RetryAt        time.Time // zero where there is none
	Steps                     []string  // that may have ended it
	Caps                      []CapUse  // all that the check falls under
}

// Consent is what of a user decides before quiet hours and caps, at some
// revision. A gate that has not heard of a change yet may still reject by an
// older one.
type Consent struct {
	global, hard bool
	settings     map[setting]bool
}

// Consent is a user's as of now.
func (o *Oracle) Consent(id string) Consent {
	u := o.user(id)
	c := Consent{global: len(u.holds) > 0, settings: map[setting]bool{}}
	for _, h := range u.holds {
		c.hard = c.hard || h.hard
	}
	for s, on := range u.settings {
		c.settings[s] = on
	}
	return c
}

// Fault says why a check cannot be judged, or nothing.
func (o *Oracle) Fault(c Check) *Refusal {
	var codes []string
	if bad(c.NotificationID) {
		return &Refusal{400, []string{"invalid_notification_id"}}
	}
	if bad(c.User) {
		return &Refusal{400, []string{"invalid_user_id"}}
	}
	if _, ok := o.catalog.Topics[c.Topic]; !ok {
		codes = append(codes, "unknown_topic")
	}
	if !o.catalog.hasChannel(c.Channel) {
		codes = append(codes, "unknown_channel")
	}
	if codes == nil {
		return nil
	}
	return &Refusal{422, codes}
}

// bad tells whether an id is illegal.
func bad(id string) bool {
	for _, r := range id {
		if r < ' ' || r == 0x7f {
			return true
		}
	}
	return len(id) == 0 || len(id) > 256
}

// Consented judges the steps before quiet hours. An empty verdict goes on to
// them; Reason is then what an allow would be for.
func (o *Oracle) Consented(k Consent, c Check) Decision {
	topic := o.catalog.Topics[c.Topic]
	d := Decision{Category: topic.Category}
	on, stored := k.settings[setting{c.Topic, c.Channel}]
	switch {
	case o.catalog.Categories[topic.Category].essential():
		d.Steps = []string{"global"}
		if k.hard {
			d.Verdict, d.Reason = "suppress", "global_unsubscribe"
			d.Steps = []string{"global", "preference"}
		} else {
			d.Verdict, d.Reason = "allow", "essential"
		}
	case k.global:
		d.Verdict, d.Reason, d.Steps = "suppress", "global_unsubscribe", []string{"global", "preference"}
	case stored && !on:
		d.Verdict, d.Reason, d.Steps = "suppress", "opted_out", []string{"filter", "preference"}
	case !stored && !topic.defaultOn(c.Channel):
		d.Verdict, d.Reason, d.Steps = "suppress", "default_off", []string{"filter", "preference"}
	case stored:
		d.Reason = "opted_in"
	default:
		d.Reason = "default_on"
	}
	return d
}

// Judge answers a check that has no fault. now is the caps' clock, at the
// quiet hours'. Where it charges, an allow takes its slots, and Caps are as
// they are afterwards.
func (o *Oracle) Judge(c Check, now, at time.Time, charges bool) Decision {
	// Who is told to come again is told a whole millisecond, and one that is at
	// least a millisecond ahead of the instant that was asked about.
	earliest := at.Add(2*time.Millisecond - time.Nanosecond).Truncate(time.Millisecond)
	now, at = now.Truncate(time.Millisecond), at.Truncate(time.Millisecond)
	d := o.Consented(o.Consent(c.User), c)
	if d.Verdict != "" {
		return d
	}
	u := o.user(c.User)
	category := o.catalog.Categories[d.Category]
	h, ignore := o.hours(u, category, c.Channel), category.inQuietHours() == "ignore"
	counters := o.counters(u, c)
	d.Caps = u.uses(counters, c.NotificationID, now)

	if !ignore && h.quiet(at) {
		d.Reason, d.Steps = "quiet_hours", []string{"quiet_hours"}
		end, opens := h.end(at)
		if !opens {
			d.Verdict = "suppress"
			return d
		}
		opening, found := u.opening(h, ignore, counters, c.NotificationID, end, now)
		d.stop(category.inQuietHours(), opening, found)
		return d
	}
	if !u.allPass(counters, c.NotificationID, now) {
		d.Reason, d.Steps = "frequency_cap", []string{"caps"}
		opening, found := u.opening(h, ignore, counters, c.NotificationID, earliest, now)
		d.stop(category.onCap(), opening, found)
		return d
	}
	d.Verdict, d.Steps = "allow", []string{"preference", "quiet_hours", "caps"}
	if charges {
		u.charge(counters, c.NotificationID, now)
		d.Caps = u.uses(counters, c.NotificationID, now)
	}
	return d
}

// stop fills in a rejection by a policy, `defer` or `suppress`.
func (d *Decision) stop(policy string, opening time.Time, found bool) {
	d.Verdict = policy
	if !found {
		return
	}
	if policy == "defer" {
		d.DeliverAt = opening
	} else {
		d.RetryAt = opening
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
