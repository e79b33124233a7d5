package quiet

import "strconv"

// The names of the parts of quiet hours that an [Error] can speak of.
const (
	fieldStart    = "start"
	fieldEnd      = "end"
	fieldDays     = "days"
	fieldTimezone = "timezone"
)

// Error says which part of somebody's quiet hours is not acceptable, and why.
// All errors of this package are of this type; use errors.As.
type Error struct {
	// Field is "start", "end", "days" or "timezone". It is empty in the errors
	// of [ParseTimeOfDay], which cannot know which end it was given.
	Field string
	// Detail is a plain sentence for whoever sent the value.
	Detail string
}

// Error returns the detail, after the name of the field if it is known.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Detail
	}
	return e.Field + ": " + e.Detail
}

// quoted puts a value from outside into a sentence. It cuts long ones, because
// the sentence goes into answers and logs and the value may be of any size.
func quoted(s string) string {
	const most = 40 // longer than any zone name
	if len(s) > most {
		return strconv.Quote(s[:most]) + " (cut)"
	}
	return strconv.Quote(s)
}
