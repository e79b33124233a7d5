package api

import (
	"time"

	"github.com/sendgate/sendgate"
)

// checkBody is a check as callers write it. Members keep their own defaults
// apart from what was given: a required one that is missing is another mistake
// than one that is empty.
type checkBody struct {
	NotificationID member[string]              `json:"notification_id"`
	UserID         member[string]              `json:"user_id"`
	Topic          member[string]              `json:"topic"`
	Channel        member[string]              `json:"channel"`
	CampaignID     optional[string]            `json:"campaign_id"`
	SenderID       optional[string]            `json:"sender_id"`
	CreativeID     optional[string]            `json:"creative_id"`
	HouseholdID    optional[string]            `json:"household_id"`
	DeviceID       optional[string]            `json:"device_id"`
	Attributes     optional[map[string]string] `json:"attributes"`
	Priority       optional[string]            `json:"priority"`
}

// check is the check that was asked for, as far as that can be told without
// the catalog.
func (b *checkBody) check() (sendgate.Check, error) {
	var errs sendgate.Errors
	c := b.named(&errs)
	c.Topic, c.Channel = b.Topic.require("topic", &errs), b.Channel.require("channel", &errs)
	return c, errs.Err()
}

// named is a check that may be known by its ids alone.
func (b *checkBody) named(errs *sendgate.Errors) sendgate.Check {
	c := sendgate.Check{
		NotificationID: b.NotificationID.require("notification_id", errs),
		User:           sendgate.UserID(b.UserID.require("user_id", errs)),
		Topic:          b.Topic.value,
		Channel:        b.Channel.value,
		CampaignID:     b.CampaignID.or(""),
		SenderID:       b.SenderID.or(""),
		CreativeID:     b.CreativeID.or(""),
		HouseholdID:    b.HouseholdID.or(""),
		DeviceID:       b.DeviceID.or(""),
		Attributes:     b.Attributes.or(nil),
	}
	if p := b.Priority.value; p != nil {
		var ok bool
		if c.Priority, ok = sendgate.ParsePriority(*p); !ok || *p == "" {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidField, "priority", "has to be low, normal or high"))
		}
	}
	return c
}

// parseCheck reads one check.
func parseCheck(data []byte) (sendgate.Check, error) {
	var b checkBody
	if err := decode(data, &b); err != nil {
		return sendgate.Check{}, err
	}
	return b.check()
}

// decisionDoc is a decision as callers see it.
type decisionDoc struct {
	NotificationID string          `json:"notification_id"`
	UserID         sendgate.UserID `json:"user_id"`
	Verdict        string          `json:"verdict"`
	Reason         string          `json:"reason"`
	Step           string          `json:"step"`
	Category       string          `json:"category"`
	Exact          bool            `json:"exact"`
	Degraded       bool            `json:"degraded"`
	DeliverAt      instant         `json:"deliver_at,omitzero"`
	RetryAt        instant         `json:"retry_at,omitzero"`
	Caps           []capStateDoc   `json:"caps,omitempty"`
}

type capStateDoc struct {
	Kind     string           `json:"kind,omitzero"`
	Subject  sendgate.Field   `json:"subject,omitzero"`
	By       []sendgate.Field `json:"by"`
	Window   string           `json:"window"`
	Limit    int              `json:"limit"`
	Kept     int              `json:"kept,omitzero"`
	KeptFor  string           `json:"kept_for,omitzero"`
	Used     int              `json:"used"`
	ResetsAt instant          `json:"resets_at,omitzero"`
}

func decisionOf(d *sendgate.Decision) decisionDoc {
	doc := decisionDoc{
		NotificationID: d.NotificationID, UserID: d.User,
		Verdict: d.Verdict.String(), Reason: d.Reason.String(), Step: d.Step.String(),
		Category: d.Category, Exact: d.Exact, Degraded: d.Degraded,
		DeliverAt: notBefore(d.DeliverAt), RetryAt: notBefore(d.RetryAt),
	}
	for i := range d.Caps {
		doc.Caps = append(doc.Caps, capStateOf(&d.Caps[i]))
	}
	return doc
}

// capStateOf is how a cap stood. A rolling cap, as most are, does not say so.
func capStateOf(s *sendgate.CapState) capStateDoc {
	doc := capStateDoc{
		Subject: s.Cap.Subject, By: s.Cap.By, Window: s.Cap.Span(), Limit: s.Cap.Limit, Kept: s.Cap.Kept, Used: s.Used, ResetsAt: notBefore(s.ResetsAt),
	}
	if s.Cap.Kind != sendgate.CapRolling {
		doc.Kind = s.Cap.Kind.String()
	}
	if s.Cap.Kept > 0 {
		doc.KeptFor = s.Cap.KeptFor.String()
	}
	return doc
}

func (s *Server) check(c *call) (reply, error) {
	data, err := c.body(maxBodyBytes)
	if err != nil {
		return reply{}, err
	}
	check, err := parseCheck(data)
	if err != nil {
		return reply{}, err
	}
	d, err := s.o.Gate.Decide(c.r.Context(), check)
	if err != nil {
		return reply{}, err
	}
	return reply{body: decisionOf(&d)}, nil
}

// explainBody is a check and the instant to explain it for.
type explainBody struct {
	checkBody
	At optional[string] `json:"at"`
}

// parseExplain reads a check to explain. The zero time is now.
func parseExplain(data []byte) (check sendgate.Check, at time.Time, err error) {
	var b explainBody
	if err := decode(data, &b); err != nil {
		return check, at, err
	}
	if check, err = b.check(); err != nil {
		return check, at, err
	}
	if b.At.value != nil {
		var fault *sendgate.Error
		if at, fault = parseInstant(*b.At.value, "at"); fault != nil {
			return check, at, fault
		}
	}
	return check, at, nil
}

type explanationDoc struct {
	decisionDoc
	Trace []findingDoc `json:"trace"`
}

type findingDoc struct {
	Step    string `json:"step"`
	Finding string `json:"finding"`
	TookUS  int64  `json:"took_us"`
}

func (s *Server) explain(c *call) (reply, error) {
	data, err := c.body(maxBodyBytes)
	if err != nil {
		return reply{}, err
	}
	check, at, err := parseExplain(data)
	if err != nil {
		return reply{}, err
	}
	d, findings, err := s.o.Gate.Explain(c.r.Context(), check, at)
	if err != nil {
		return reply{}, err
	}
	doc := explanationDoc{decisionDoc: decisionOf(&d)}
	for _, f := range findings {
		doc.Trace = append(doc.Trace, findingDoc{f.Step.String(), f.Finding, f.Took.Microseconds()})
	}
	return reply{body: doc}, nil
}
