package sendgate

import (
	"errors"
	"fmt"
	"strings"
)

// Code names a kind of refusal. Codes are part of the interface: callers
// switch on them, so a code never changes its meaning.
type Code string

// The refusals. The HTTP status that goes with each stands in one table in
// package api.
const (
	CodeMalformedJSON         Code = "malformed_json"
	CodeUnknownField          Code = "unknown_field"
	CodeDuplicateField        Code = "duplicate_field"
	CodeInvalidUserID         Code = "invalid_user_id"
	CodeInvalidNotificationID Code = "invalid_notification_id"
	CodeNotFound              Code = "not_found"
	CodeMethodNotAllowed      Code = "method_not_allowed"
	CodeRevisionMismatch      Code = "revision_mismatch"
	CodeBodyTooLarge          Code = "body_too_large"
	CodeBatchTooLarge         Code = "batch_too_large"
	CodeUnsupportedMediaType  Code = "unsupported_media_type"
	CodeMissingField          Code = "missing_field"
	CodeInvalidField          Code = "invalid_field"
	CodeReadOnlyField         Code = "read_only_field"
	CodeUnknownTopic          Code = "unknown_topic"
	CodeUnknownChannel        Code = "unknown_channel"
	CodeUnknownCategory       Code = "unknown_category"
	CodeEssentialTopic        Code = "essential_topic"
	CodeInvalidQuietHours     Code = "invalid_quiet_hours"
	CodeInvalidTimezone       Code = "invalid_timezone"
	CodeInvalidCap            Code = "invalid_cap"
	CodeDuplicateEntry        Code = "duplicate_entry"
	CodeInvalidReason         Code = "invalid_reason"
	CodeInvalidSource         Code = "invalid_source"
	CodeRecordTooLarge        Code = "record_too_large"
	CodeStoreUnavailable      Code = "store_unavailable"
	CodeInternal              Code = "internal"
)

// Error is one refusal: what kind, of which field, and why in a plain
// sentence. Field is a path in the caller's own body, such as
// `preferences[3].channel`; it is empty where no field is at fault.
type Error struct {
	Code   Code
	Field  string
	Detail string
	Err    error // what was underneath, if anything; not shown to callers
}

// Errorf makes an Error from a format.
func Errorf(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Detail: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Errors is several refusals of one body, in the order of its members.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Add appends an error; nil is nothing to add.
func (es *Errors) Add(e *Error) {
	if e != nil {
		*es = append(*es, e)
	}
}

// Err is nil when nothing was added, the one error when there is one, and the
// list otherwise.
func (es Errors) Err() error {
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	default:
		return es
	}
}

// CodeOf tells the code of an error: the first one's of several, and
// CodeInternal for an error that carries none.
func CodeOf(err error) Code {
	var one *Error
	if errors.As(err, &one) {
		return one.Code
	}
	var many Errors
	if errors.As(err, &many) && len(many) > 0 {
		return many[0].Code
	}
	return CodeInternal
}
