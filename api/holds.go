package api

import (
	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

type unsubscribeBody struct {
	UserID          member[string]   `json:"user_id"`
	Reason          member[string]   `json:"reason"`
	RetainEssential optional[bool]   `json:"retain_essential"`
	Source          optional[string] `json:"source"`
}

// parseUnsubscribe reads a request for a hold.
func parseUnsubscribe(data []byte) (prefs.Unsubscribe, error) {
	var b unsubscribeBody
	if err := decode(data, &b); err != nil {
		return prefs.Unsubscribe{}, err
	}
	var errs sendgate.Errors
	u := prefs.Unsubscribe{
		User:            sendgate.UserID(b.UserID.require("user_id", &errs)),
		Reason:          b.Reason.require("reason", &errs),
		RetainEssential: b.RetainEssential.value,
		Source:          sourceOf(&b.Source, &errs),
	}
	return u, errs.Err()
}

type resubscribeBody struct {
	UserID member[string]   `json:"user_id"`
	Reason member[string]   `json:"reason"`
	Source optional[string] `json:"source"`
}

// parseResubscribe reads a request to lift a hold.
func parseResubscribe(data []byte) (prefs.Resubscribe, error) {
	var b resubscribeBody
	if err := decode(data, &b); err != nil {
		return prefs.Resubscribe{}, err
	}
	var errs sendgate.Errors
	u := prefs.Resubscribe{
		User:   sendgate.UserID(b.UserID.require("user_id", &errs)),
		Reason: b.Reason.require("reason", &errs),
		Source: sourceOf(&b.Source, &errs),
	}
	return u, errs.Err()
}

// sourceOf: a source that is left out has a default, an empty one has not.
func sourceOf(o *optional[string], errs *sendgate.Errors) sendgate.HoldSource {
	if o.value != nil && *o.value == "" {
		errs.Add(sendgate.Errorf(sendgate.CodeInvalidSource, "source", "must be user or operator"))
	}
	return sendgate.HoldSource(o.or(""))
}

type unsubscribedDoc struct {
	UserID            sendgate.UserID `json:"user_id"`
	GlobalUnsubscribe bool            `json:"global_unsubscribe"`
	EssentialOnly     bool            `json:"essential_only"`
	EffectiveAt       instant         `json:"effective_at"`
	TopicsDisabled    int             `json:"topics_disabled"`
	ChannelsDisabled  int             `json:"channels_disabled"`
}

func (s *Server) unsubscribeAll(c *call) (reply, error) {
	meta, err := c.meta()
	if err != nil {
		return reply{}, err
	}
	data, err := c.body(maxBodyBytes)
	if err != nil {
		return reply{}, err
	}
	u, err := parseUnsubscribe(data)
	if err != nil {
		return reply{}, err
	}
	effect, err := s.o.Preferences.UnsubscribeAll(c.r.Context(), u, meta)
	if err != nil {
		return reply{}, err
	}
	topics, pairs := s.o.Gate.Catalog().Switchable()
	return reply{body: unsubscribedDoc{
		UserID: u.User, GlobalUnsubscribe: effect.Preferences.Global(), EssentialOnly: !effect.Preferences.Hard(),
		EffectiveAt: instantOf(effect.At), TopicsDisabled: topics, ChannelsDisabled: pairs,
	}}, nil
}

type resubscribedDoc struct {
	UserID            sendgate.UserID `json:"user_id"`
	GlobalUnsubscribe bool            `json:"global_unsubscribe"`
	EffectiveAt       instant         `json:"effective_at"`
}

func (s *Server) resubscribe(c *call) (reply, error) {
	meta, err := c.meta()
	if err != nil {
		return reply{}, err
	}
	data, err := c.body(maxBodyBytes)
	if err != nil {
		return reply{}, err
	}
	u, err := parseResubscribe(data)
	if err != nil {
		return reply{}, err
	}
	effect, err := s.o.Preferences.Resubscribe(c.r.Context(), u, meta)
	if err != nil {
		return reply{}, err
	}
	return reply{body: resubscribedDoc{
		UserID: u.User, GlobalUnsubscribe: effect.Preferences.Global(), EffectiveAt: instantOf(effect.At),
	}}, nil
}
