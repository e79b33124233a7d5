package api

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendgate/sendgate"
)

// Decisions are the answers that are given all day, and are written by hand. A
// text that is no UTF-8 is repaired: it can only come from where ids were not
// validated.

// appendDecision writes a decision as callers see it.
func appendDecision(b []byte, d *sendgate.Decision) []byte {
	return append(appendOpenDecision(b, d), '}')
}

// appendOpenDecision writes a decision, up to where further members may follow.
func appendOpenDecision(b []byte, d *sendgate.Decision) []byte {
	b = appendText(append(b, `{"notification_id":`...), d.NotificationID)
	b = appendText(append(b, `,"user_id":`...), d.User)
	b = appendText(append(b, `,"verdict":`...), d.Verdict.String())
	b = appendText(append(b, `,"reason":`...), d.Reason.String())
	b = appendText(append(b, `,"step":`...), d.Step.String())
	b = appendText(append(b, `,"category":`...), d.Category)
	b = strconv.AppendBool(append(b, `,"exact":`...), d.Exact)
	b = strconv.AppendBool(append(b, `,"degraded":`...), d.Degraded)
	b = appendNotBefore(b, `,"deliver_at":`, d.DeliverAt)
	b = appendNotBefore(b, `,"retry_at":`, d.RetryAt)
	if len(d.Caps) == 0 {
		return b
	}
	b = append(b, `,"caps":[`...)
	for i := range d.Caps {
		b = appendCapState(appendComma(b, i), &d.Caps[i])
	}
	return append(b, ']')
}

// appendCapState writes how a cap stood. A rolling cap, as most are, does not
// say so.
func appendCapState(b []byte, s *sendgate.CapState) []byte {
	b = append(b, '{')
	if s.Cap.Kind != sendgate.CapRolling {
		b = append(appendText(append(b, `"kind":`...), s.Cap.Kind.String()), ',')
	}
	if s.Cap.Subject != "" {
		b = append(appendText(append(b, `"subject":`...), s.Cap.Subject), ',')
	}
	b = append(b, `"by":[`...)
	for i, field := range s.Cap.By {
		b = appendText(appendComma(b, i), field)
	}
	b = appendText(append(b, `],"window":`...), s.Cap.Span())
	b = appendNumber(append(b, `,"limit":`...), s.Cap.Limit)
	if s.Cap.Kept > 0 {
		b = appendNumber(append(b, `,"kept":`...), s.Cap.Kept)
		b = appendText(append(b, `,"kept_for":`...), s.Cap.KeptFor.String())
	}
	b = appendNumber(append(b, `,"used":`...), s.Used)
	return append(appendNotBefore(b, `,"resets_at":`, s.ResetsAt), '}')
}

// appendItemError writes what stands in the place of an item that was wrong.
func appendItemError(b []byte, err error) []byte {
	f := faultsOf(err)[0]
	b = appendText(append(b, `{"error":{"code":`...), f.Code)
	b = appendGiven(b, `,"field":`, f.Field)
	return append(appendGiven(b, `,"detail":`, f.Detail), "}}"...)
}

// appendFindings writes the trace of an explanation.
func appendFindings(b []byte, findings []sendgate.Finding) []byte {
	b = append(b, '[')
	for i, f := range findings {
		b = appendText(append(appendComma(b, i), `{"step":`...), f.Step.String())
		b = appendText(append(b, `,"finding":`...), f.Finding)
		b = append(strconv.AppendInt(append(b, `,"took_us":`...), f.Took.Microseconds(), 10), '}')
	}
	return append(b, ']')
}

// appendComma separates the i-th element from the one before it.
func appendComma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

// appendGiven writes a member, unless it is empty.
func appendGiven[T ~string](b []byte, name string, text T) []byte {
	if text == "" {
		return b
	}
	return appendText(append(b, name...), text)
}

func appendText[T ~string](b []byte, text T) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}

func appendNumber(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
