package api

import (
	"github.com/sendgate/sendgate"
)

// outcomesBody is a list of reports that are not decoded yet: one that is wrong
// in itself fails alone.
type outcomesBody struct {
	Outcomes member[rawItems] `json:"outcomes"`
}

// outcomeBody is one report: the ids of a check, or all of it, and what became of
// it.
type outcomeBody struct {
	checkBody
	Outcome member[string]   `json:"outcome"`
	At      optional[string] `json:"at"`
}

// parseOutcome reads one report.
func parseOutcome(data []byte) (o sendgate.Outcome, err error) {
	var b outcomeBody
	if err := decode(data, &b); err != nil {
		return o, err
	}
	var errs sendgate.Errors
	o.Check = b.named(&errs)
	for _, m := range []struct {
		field string
		empty bool
	}{{"topic", b.Topic.given && b.Topic.value == ""}, {"channel", b.Channel.given && b.Channel.value == ""}} {
		if m.empty {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidField, m.field, "has a name, or is left out"))
		}
	}
	var known bool
	if o.Fate, known = sendgate.ParseFate(b.Outcome.require("outcome", &errs)); !known && b.Outcome.given && !b.Outcome.null {
		errs.Add(sendgate.Errorf(sendgate.CodeInvalidField, "outcome", "has to be delivered, failed or dropped"))
	}
	if b.At.value != nil {
		var fault *sendgate.Error
		o.At, fault = parseInstant(*b.At.value, "at")
		errs.Add(fault)
	}
	return o, errs.Err()
}

type settlementDoc struct {
	Status string `json:"status"`
}

func (s *Server) reportOutcomes(c *call) (reply, error) {
	data, err := c.body(maxBatchBytes)
	if err != nil {
		return reply{}, err
	}
	var body outcomesBody
	if err := decodeItems(data, &body); err != nil {
		return reply{}, err
	}
	items := body.Outcomes.value
	if len(items) == 0 {
		return reply{}, sendgate.Errorf(sendgate.CodeMissingField, "outcomes", "at least one outcome is required")
	}
	outcomes, errs := make([]sendgate.Outcome, 0, len(items)), make([]error, len(items))
	for i, item := range items {
		o, err := parseOutcome(data[item.from:item.to])
		if errs[i] = err; err == nil {
			outcomes = append(outcomes, o)
		}
	}
	settled, results := s.o.Gate.Settle(c.r.Context(), outcomes), make([]any, len(items))
	for i, err := range errs {
		if err == nil {
			err = settled[0].Err
			results[i] = settlementDoc{settled[0].Status.String()}
			settled = settled[1:]
		}
		if err != nil {
			results[i] = itemError{faultsOf(err)[0]}
		}
	}
	return reply{body: struct {
		Results []any `json:"results"`
	}{results}}, nil
}
