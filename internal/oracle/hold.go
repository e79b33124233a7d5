package oracle

import (
	"slices"
	"time"
)

// reasons are those that a hold may have.
var reasons = []string{"user_requested", "gdpr_request", "account_deletion", "operator_block"}

// Unsubscribe is the body of an unsubscribe-all or a resubscribe.
type Unsubscribe struct {
	User            string `json:"user_id"`
	Reason          string `json:"reason,omitempty"`
	RetainEssential *bool  `json:"retain_essential,omitempty"` // of an unsubscribe-all only
	Source          string `json:"source,omitempty"`
}

// HoldAnswer is the answer to both. EssentialOnly and the counts are an
// unsubscribe-all's.
type HoldAnswer struct {
	Global, EssentialOnly bool
	Topics, Channels      int
	EffectiveAt           time.Time // zero where nothing was lifted
}

// Unsubscribe places a hold.
func (o *Oracle) Unsubscribe(b Unsubscribe, now time.Time) (HoldAnswer, *Refusal) {
	if refusal := b.fault(true); refusal != nil {
		return HoldAnswer{}, refusal
	}
	u, source := o.user(b.User), b.source()
	next := hold{reason: b.Reason, hard: b.Reason == "account_deletion", at: now.Truncate(time.Millisecond)}
	if b.RetainEssential != nil {
		next.hard = !*b.RetainEssential
	}
	old, stands := u.holds[source]
	softens := stands && old.hard && !next.hard
	same := stands && old.reason == next.reason && old.hard == next.hard
	if !softens && !same {
		u.holds[source] = next
		u.saved(now)
	}
	a := HoldAnswer{Global: true, EssentialOnly: true, EffectiveAt: u.holds[source].at}
	for _, h := range u.holds {
		a.EssentialOnly = a.EssentialOnly && !h.hard
	}
	a.Topics, a.Channels = o.catalog.switchedOff()
	return a, nil
}

// Resubscribe lifts one source's hold.
func (o *Oracle) Resubscribe(b Unsubscribe, now time.Time) (HoldAnswer, *Refusal) {
	if refusal := b.fault(false); refusal != nil {
		return HoldAnswer{}, refusal
	}
	u, a := o.user(b.User), HoldAnswer{}
	if _, stands := u.holds[b.source()]; stands {
		delete(u.holds, b.source())
		u.saved(now)
		a.EffectiveAt = u.updated
	}
	a.Global = len(u.holds) > 0
	return a, nil
}

func (b Unsubscribe) source() string {
	switch {
	case b.Source != "":
		return b.Source
	case b.Reason == "operator_block":
		return "operator"
	}
	return "user"
}

// fault: the reason for lifting a hold is in the caller's own words.
func (b Unsubscribe) fault(placing bool) *Refusal {
	switch {
	case bad(b.User):
		return &Refusal{400, []string{"invalid_user_id"}}
	case b.Reason == "":
		return &Refusal{422, []string{"missing_field"}}
	case placing && !slices.Contains(reasons, b.Reason):
		return &Refusal{422, []string{"invalid_reason"}}
	case b.Source != "" && b.Source != "user" && b.Source != "operator":
		return &Refusal{422, []string{"invalid_source"}}
	}
	return nil
}
