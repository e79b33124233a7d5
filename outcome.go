package sendgate

import (
	"context"
	"slices"
	"time"
)

// Fate is what became of a notification that was allowed.
type Fate uint8

// The fates.
const (
	Delivered Fate = iota
	Failed         // it was tried, and never delivered
	Dropped        // it was not even tried
)

// ParseFate reads `delivered`, `failed` or `dropped`.
func ParseFate(s string) (Fate, bool) {
	for f := Delivered; f <= Dropped; f++ {
		if f.String() == s {
			return f, true
		}
	}
	return 0, false
}

// String is the fate's name in the interface.
func (f Fate) String() string { return [...]string{"delivered", "failed", "dropped"}[f] }

// Outcome reports what became of a notification on one channel, or on all
// channels if it names none. With the check's topic and other fields it also
// counts a delivery for which no slot was taken.
type Outcome struct {
	Check Check // only its ids are required
	Fate  Fate
	At    time.Time // when it was delivered, or failed; zero is now
}

// Status says what an Outcome led to.
type Status uint8

// The statuses.
const (
	StatusUnknown   Status = iota // no slot was ever taken under this id, as far as is known
	StatusSettled                 // what was taken stays taken
	StatusGivenBack               // slots are free again
	StatusExpired                 // of a moment that no cap counts any more
	StatusUnchanged               // the same was reported before
)

// String is the status' name in the interface.
func (s Status) String() string {
	return [...]string{"unknown", "settled", "given_back", "expired", "unchanged"}[s]
}

// Settlement is what came of one Outcome.
type Settlement struct {
	Outcome *Outcome
	Status  Status
	At      time.Time  // of the change, by the clock of the caps
	Caps    []BoundCap // that the report's fields name
	Over    int        // caps that were full when the delivery was counted
	Err     error      // *Error or Errors if the outcome was wrong; nothing was changed then
}

// CapReport is an Outcome as Caps are told of it.
type CapReport struct {
	User           UserID
	NotificationID string
	Channel        string // empty: every channel
	Fate           Fate
	At             time.Time  // zero is now
	Caps           []BoundCap // to count a delivery in for which no slot was taken; nil: in none
}

// CapReceipt is what a CapReport led to.
type CapReceipt struct {
	Status Status
	At     time.Time // by the clock of the caps
	Over   int       // caps that were full already
	Err    error
}

// Validate holds an outcome against the catalog. What names no topic carries no
// other field of a check but the channel.
func (o *Outcome) Validate(catalog *Catalog) error {
	c := &o.Check
	if c.Topic != "" {
		if c.Channel == "" {
			return Errorf(CodeMissingField, "channel", "is required where the fields of the check are reported")
		}
		return c.Validate(catalog)
	}
	errs := c.idFaults()
	if c.Channel != "" && !catalog.HasChannel(c.Channel) {
		errs.Add(Errorf(CodeUnknownChannel, "channel", "the catalog has no channel %q", Clip(c.Channel)))
	}
	if c.CampaignID+c.SenderID+c.CreativeID+c.HouseholdID+c.DeviceID != "" || c.Attributes != nil || c.Priority != PriorityNormal {
		errs.Add(Errorf(CodeMissingField, "topic", "is required where the fields of the check are reported"))
	}
	return errs.Err()
}

// Settle takes reports of what became of notifications, in order. One that is
// wrong, or whose caps cannot be found out, fails alone. Reporting the same again
// does no harm.
func (g *Gate) Settle(ctx context.Context, outcomes []Outcome) []Settlement {
	catalog := g.Catalog()
	settled := make([]Settlement, len(outcomes))
	for i := range outcomes {
		settled[i].Outcome = &outcomes[i]
		settled[i].Err = outcomes[i].Validate(catalog)
	}
	g.nameCaps(ctx, catalog, settled)
	reports, which := make([]CapReport, 0, len(outcomes)), make([]*Settlement, 0, len(outcomes))
	for i := range settled {
		if s, o := &settled[i], &outcomes[i]; s.Err == nil {
			reports = append(reports, CapReport{
				User: o.Check.User, NotificationID: o.Check.NotificationID, Channel: o.Check.Channel, Fate: o.Fate, At: o.At, Caps: s.Caps,
			})
			which = append(which, s)
		}
	}
	for k, receipt := range g.caps.Settle(ctx, reports) {
		s := which[k]
		s.Status, s.At, s.Over = receipt.Status, receipt.At, receipt.Over
		if receipt.Err != nil {
			s.Err = unsettled("the Redis that holds the caps did not answer: repeat the report", receipt.Err)
		}
	}
	for i := range settled {
		if settled[i].Err == nil {
			g.observer.Settled(&settled[i])
		}
	}
	return settled
}

func unsettled(detail string, err error) error {
	return &Error{Code: CodeStoreUnavailable, Detail: detail, Err: err}
}

// nameCaps finds the caps that the fields of reported deliveries name: the
// catalog's, and those of the users, whose records are read where they matter.
func (g *Gate) nameCaps(ctx context.Context, catalog *Catalog, settled []Settlement) {
	r := &round{Gate: g, catalog: catalog}
	cases := make(map[*Settlement]*checkCase)
	var ask []*checkCase
	for i := range settled {
		s := &settled[i]
		if s.Err != nil || s.Outcome.Check.Topic == "" || s.Outcome.Fate != Delivered {
			continue
		}
		c := &checkCase{again: true}
		c.open(&s.Outcome.Check, catalog, g.now())
		if cases[s] = c; c.category.capsNeedRecord() {
			ask = append(ask, c)
		}
	}
	r.read(ctx, ask)
	for s, c := range cases {
		if c.err != nil {
			s.Err = unsettled("the user's record, which the caps depend on, could not be read: repeat the report", c.err)
			continue
		}
		s.Caps = r.boundCaps(c)
	}
}

// capsNeedRecord tells whether what caps apply, or how they count, depends on the
// user's record.
func (c *Category) capsNeedRecord() bool {
	return !c.Essential && (c.UserCaps || slices.ContainsFunc(c.Caps, func(own Cap) bool { return own.Kind == CapCalendar }))
}
