package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sendgate/sendgate"
)

const (
	// maxItems is how many items the interface takes in one body.
	maxItems = 1000
	// maxBodyBytes is less than the interface takes in one body, and many times
	// what the largest check has. Collected checks are cut by it.
	maxBodyBytes = 1 << 20
	// maxListBytes leaves room for the members around a list.
	maxListBytes = 2<<20 - 64
	// maxNameBytes is the longest name that a catalog can have.
	maxNameBytes = 64

	instantLayout = "2006-01-02T15:04:05.000Z"
)

type checkDoc struct {
	NotificationID string            `json:"notification_id"`
	UserID         sendgate.UserID   `json:"user_id"`
	Topic          string            `json:"topic,omitempty"`
	Channel        string            `json:"channel,omitempty"`
	CampaignID     string            `json:"campaign_id,omitempty"`
	SenderID       string            `json:"sender_id,omitempty"`
	CreativeID     string            `json:"creative_id,omitempty"`
	HouseholdID    string            `json:"household_id,omitempty"`
	DeviceID       string            `json:"device_id,omitempty"`
	Attributes     map[string]string `json:"attributes,omitempty"`
	Priority       string            `json:"priority,omitempty"`
	Outcome        string            `json:"outcome,omitempty"`
	At             string            `json:"at,omitempty"`
}

// docOf is a check as the interface has it. What is not legal is refused here:
// the encoder would repair text that is not UTF-8, and so turn one user into
// another.
func docOf(c *sendgate.Check) (checkDoc, error) {
	if err := c.ValidateIDs(); err != nil {
		return checkDoc{}, err
	}
	for _, name := range []struct {
		code         sendgate.Code
		field, value string
	}{{sendgate.CodeUnknownTopic, "topic", c.Topic}, {sendgate.CodeUnknownChannel, "channel", c.Channel}} {
		if len(name.value) > maxNameBytes || !utf8.ValidString(name.value) {
			return checkDoc{}, sendgate.Errorf(name.code, name.field, "no catalog has such a %s", name.field)
		}
	}
	doc := checkDoc{
		NotificationID: c.NotificationID, UserID: c.User, Topic: c.Topic, Channel: c.Channel, CampaignID: c.CampaignID, SenderID: c.SenderID,
		CreativeID: c.CreativeID, HouseholdID: c.HouseholdID, DeviceID: c.DeviceID, Attributes: c.Attributes,
	}
	switch c.Priority {
	case sendgate.PriorityNormal:
	case sendgate.PriorityLow, sendgate.PriorityHigh:
		doc.Priority = c.Priority.String()
	default:
		return checkDoc{}, sendgate.Errorf(sendgate.CodeInvalidField, "priority", "has to be low, normal or high")
	}
	return doc, nil
}

// encodeCheck writes one check. Topic and channel have to be there.
func encodeCheck(c *sendgate.Check) ([]byte, error) {
	doc, err := docOf(c)
	switch {
	case err != nil:
		return nil, err
	case c.Topic == "":
		return nil, sendgate.Errorf(sendgate.CodeMissingField, "topic", "is required")
	case c.Channel == "":
		return nil, sendgate.Errorf(sendgate.CodeMissingField, "channel", "is required")
	}
	return encode(doc)
}

// encodeOutcome writes one report.
func encodeOutcome(o *sendgate.Outcome) ([]byte, error) {
	doc, err := docOf(&o.Check)
	if err != nil {
		return nil, err
	}
	if o.Fate > sendgate.Dropped {
		return nil, sendgate.Errorf(sendgate.CodeInvalidField, "outcome", "has to be delivered, failed or dropped")
	}
	doc.Outcome = o.Fate.String()
	if !o.At.IsZero() {
		doc.At = o.At.UTC().Format(instantLayout)
	}
	return encode(doc)
}

func encode(doc checkDoc) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(doc)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// listBody is the body of a request of several items.
func listBody(member string, items [][]byte, take int) []byte {
	var b bytes.Buffer
	size := 64
	for _, item := range items {
		size += len(item) + 1
	}
	b.Grow(size)
	b.WriteString(`{"` + member + `":[`)
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(item)
	}
	b.WriteByte(']')
	if take > 0 {
		fmt.Fprintf(&b, `,"take":%d`, take)
	}
	b.WriteByte('}')
	return b.Bytes()
}

type faultDoc struct {
	Code   sendgate.Code `json:"code"`
	Field  string        `json:"field"`
	Detail string        `json:"detail"`
}

func (f *faultDoc) err() *sendgate.Error {
	return &sendgate.Error{Code: f.Code, Field: f.Field, Detail: f.Detail}
}

// parseProblem reads a refusal, or nothing.
func parseProblem(data []byte) error {
	var doc struct {
		faultDoc
		Errors []faultDoc `json:"errors"`
	}
	switch err := json.Unmarshal(data, &doc); {
	case err != nil || doc.Code == "":
		return nil //nolint:nilerr // what cannot be read is no refusal
	case len(doc.Errors) == 0:
		return doc.err()
	}
	var errs sendgate.Errors
	for i := range doc.Errors {
		errs.Add(doc.Errors[i].err())
	}
	return errs.Err()
}

type decisionDoc struct {
	NotificationID string          `json:"notification_id"`
	UserID         sendgate.UserID `json:"user_id"`
	Verdict        string          `json:"verdict"`
	Reason         string          `json:"reason"`
	Step           string          `json:"step"`
	Category       string          `json:"category"`
	Exact          bool            `json:"exact"`
	Degraded       bool            `json:"degraded"`
	DeliverAt      time.Time       `json:"deliver_at"`
	RetryAt        time.Time       `json:"retry_at"`
	Caps           []Cap           `json:"caps"`
	Error          *faultDoc       `json:"error"`
}

// result is what the document says of a check. An answer that is not about this
// check is about somebody else, whose verdict it must not be.
func (doc *decisionDoc) result(c *sendgate.Check) (Result, error) {
	if doc.Error != nil {
		if doc.Error.Code == sendgate.CodeStoreUnavailable || doc.Error.Code == sendgate.CodeInternal {
			return Result{}, fmt.Errorf("%w: %s", ErrFailing, doc.Error.Code)
		}
		return Result{Err: doc.Error.err()}, nil
	}
	verdict, known := sendgate.ParseVerdict(doc.Verdict)
	if !known || doc.Reason == "" || doc.NotificationID != c.NotificationID || doc.UserID != c.User {
		return Result{}, fmt.Errorf("%w: it does not answer the check", ErrGarbled)
	}
	return Result{Decision: Decision{
		NotificationID: c.NotificationID, User: c.User, Verdict: verdict, Reason: doc.Reason, Step: doc.Step, Category: doc.Category,
		Exact: doc.Exact, Degraded: doc.Degraded, DeliverAt: doc.DeliverAt, RetryAt: doc.RetryAt, Caps: doc.Caps, check: *c,
	}}, nil
}

// parseDecision reads the answer to a single check.
func parseDecision(data []byte, c *sendgate.Check) (Result, error) {
	var doc decisionDoc
	if err := json.Unmarshal(data, &doc); err != nil {
		return Result{}, garbled(err)
	}
	return doc.result(c)
}

// parseDecisions reads the answer to a list of checks: all of it, or nothing.
func parseDecisions(data []byte, checks []*sendgate.Check) ([]Result, error) {
	var doc struct {
		Decisions []decisionDoc `json:"decisions"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, garbled(err)
	}
	if len(doc.Decisions) != len(checks) {
		return nil, fmt.Errorf("%w: %d decisions for %d checks", ErrGarbled, len(doc.Decisions), len(checks))
	}
	results := make([]Result, len(checks))
	for i := range doc.Decisions {
		var err error
		if results[i], err = doc.Decisions[i].result(checks[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// parseSettlements reads the answer to n reports: all of it, or nothing.
func parseSettlements(data []byte, n int) ([]Settlement, error) {
	var doc struct {
		Results []struct {
			Status string    `json:"status"`
			Error  *faultDoc `json:"error"`
		} `json:"results"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, garbled(err)
	}
	if len(doc.Results) != n {
		return nil, fmt.Errorf("%w: %d results for %d reports", ErrGarbled, len(doc.Results), n)
	}
	settled := make([]Settlement, n)
	for i, r := range doc.Results {
		switch {
		case r.Error != nil:
			settled[i].Err = r.Error.err()
		case r.Status == "":
			return nil, fmt.Errorf("%w: a result says nothing", ErrGarbled)
		}
		settled[i].Status = r.Status
	}
	return settled, nil
}

// garbled leaves out what the decoder quotes, which may be anything.
func garbled(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w: no JSON from byte %d on", ErrGarbled, syntax.Offset)
	}
	return fmt.Errorf("%w: JSON of another form", ErrGarbled)
}
