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
	if c, ok := plainCheck(data); ok {
		return c, nil
	}
	return decodeCheck(data)
}

// decodeCheck reads a check however it is written.
func decodeCheck(data []byte) (sendgate.Check, error) {
	var b checkBody
	if err := decode(data, &b); err != nil {
		return sendgate.Check{}, err
	}
	return b.check()
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
	return c.encoded(appendDecision(c.answer(), &d)), nil
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
	text := append(appendOpenDecision(c.answer(), &d), `,"trace":`...)
	return c.encoded(append(appendFindings(text, findings), '}')), nil
}
