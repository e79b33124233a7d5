package prefs

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sendgate/sendgate"
)

// The reasons for which everything may be switched off for a user.
const (
	ReasonUserRequested   = "user_requested"
	ReasonGDPRRequest     = "gdpr_request"
	ReasonAccountDeletion = "account_deletion"
	ReasonOperatorBlock   = "operator_block"
)

var holdReasons = []string{ReasonUserRequested, ReasonGDPRRequest, ReasonAccountDeletion, ReasonOperatorBlock}

// Unsubscribe asks for a hold. Empty or nil members take their defaults: the
// operator is the source of an operator_block and the user of anything else,
// and essential notifications are retained except by account_deletion.
type Unsubscribe struct {
	User            sendgate.UserID
	Reason          string
	RetainEssential *bool
	Source          sendgate.HoldSource
}

func (u Unsubscribe) hold(at time.Time) (sendgate.Hold, error) {
	var errs sendgate.Errors
	errs.Add(u.User.Validate("user_id"))
	if !slices.Contains(holdReasons, u.Reason) {
		errs.Add(sendgate.Errorf(sendgate.CodeInvalidReason, "reason", "must be one of %s", strings.Join(holdReasons, ", ")))
	}
	source, fault := holdSource(u.Source, u.Reason)
	errs.Add(fault)
	if u.Reason == ReasonOperatorBlock && source == sendgate.SourceUser {
		errs.Add(sendgate.Errorf(sendgate.CodeInvalidSource, "source", "an operator_block is the operator's"))
	}
	h := sendgate.Hold{Source: source, Reason: u.Reason, RetainEssential: u.Reason != ReasonAccountDeletion, At: at}
	if u.RetainEssential != nil {
		h.RetainEssential = *u.RetainEssential
	}
	return h, errs.Err()
}

// Resubscribe asks to lift the hold of a source, whatever its reason. Reason
// says why, in the caller's words. The source is the user unless it is named
// or the reason is operator_block.
type Resubscribe struct {
	User   sendgate.UserID
	Reason string
	Source sendgate.HoldSource
}

func (u Resubscribe) source() (sendgate.HoldSource, error) {
	var errs sendgate.Errors
	errs.Add(u.User.Validate("user_id"))
	if u.Reason == "" || metaFault(u.Reason) != "" {
		errs.Add(sendgate.Errorf(sendgate.CodeInvalidReason, "reason", "must be 1 to %d bytes of text", MaxMetaBytes))
	}
	source, fault := holdSource(u.Source, u.Reason)
	errs.Add(fault)
	return source, errs.Err()
}

func holdSource(named sendgate.HoldSource, reason string) (sendgate.HoldSource, *sendgate.Error) {
	switch named {
	case sendgate.SourceUser, sendgate.SourceOperator:
		return named, nil
	case "":
		if reason == ReasonOperatorBlock {
			return sendgate.SourceOperator, nil
		}
		return sendgate.SourceUser, nil
	}
	return "", sendgate.Errorf(sendgate.CodeInvalidSource, "source", "must be user or operator")
}

// placeHold puts a hold on a record. A source has one hold; asking again
// renews its reason, but never softens a hard one: only lifting it does.
func placeHold(r *Record, h sendgate.Hold) []Diff {
	d := Diff{Kind: DiffHold, Source: h.Source, After: holdJSON(h)}
	at := slices.IndexFunc(r.Holds, func(o sendgate.Hold) bool { return o.Source == h.Source })
	if at >= 0 {
		old := r.Holds[at]
		harder := old.RetainEssential && !h.RetainEssential
		softer := !old.RetainEssential && h.RetainEssential
		if softer || !harder && old.Reason == h.Reason {
			return nil
		}
		d.Before = holdJSON(old)
		r.Holds[at] = h
		return []Diff{d}
	}
	r.Holds = append(r.Holds, h)
	slices.SortFunc(r.Holds, func(a, b sendgate.Hold) int { return strings.Compare(string(a.Source), string(b.Source)) })
	return []Diff{d}
}

// liftHold takes a source's hold off a record.
func liftHold(r *Record, source sendgate.HoldSource) []Diff {
	at := slices.IndexFunc(r.Holds, func(o sendgate.Hold) bool { return o.Source == source })
	if at < 0 {
		return nil
	}
	d := Diff{Kind: DiffHold, Source: source, Before: holdJSON(r.Holds[at])}
	r.Holds = slices.Delete(r.Holds, at, at+1)
	return []Diff{d}
}

func holdJSON(h sendgate.Hold) json.RawMessage {
	return jsonOf(struct {
		Reason          string `json:"reason"`
		RetainEssential bool   `json:"retain_essential"`
	}{h.Reason, h.RetainEssential})
}

// metaFault says what is wrong with a text that goes into the audit log.
func metaFault(s string) string {
	switch {
	case len(s) > MaxMetaBytes:
		return "must not be longer than 256 bytes"
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "must not contain control characters"
	}
	return ""
}

// Validate says what is wrong with the meta of a change, naming the header
// that carries each member.
func (m Meta) Validate() error {
	var errs sendgate.Errors
	for _, f := range []struct{ name, value string }{{"Sendgate-Actor", m.Actor}, {"Sendgate-Reason", m.Reason}} {
		if why := metaFault(f.value); why != "" {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidField, f.name, "%s %s", f.name, why))
		}
	}
	return errs.Err()
}
