package prefs

import (
	"encoding/json"
	"errors"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/quiet"
)

// QuietHoursEdit merges into a user's quiet hours by member; nil members stay
// as they are.
type QuietHoursEdit struct {
	Remove   bool // takes the quiet hours away, zone included
	Enabled  *bool
	Start    *string
	End      *string
	Days     *[]string // empty is every day
	Timezone *string
}

// apply merges and validates. Members that stay as they are stored are not
// judged anew: a zone that the database no longer knows can be written back.
func (e *QuietHoursEdit) apply(r *Record, errs *sendgate.Errors) []Diff {
	if e == nil || *e == (QuietHoursEdit{}) {
		return nil
	}
	before := r.QuietHours
	if e.Remove {
		if before == nil {
			return nil
		}
		r.QuietHours = nil
		return []Diff{{Kind: DiffQuietHours, Before: quietJSON(before)}}
	}
	after, err := e.merge(before)
	if err != nil {
		errs.Add(err)
		return nil
	}
	if before != nil && sameQuietHours(*before, after) {
		return nil
	}
	r.QuietHours = &after
	return []Diff{{Kind: DiffQuietHours, Before: quietJSON(before), After: quietJSON(&after)}}
}

func (e *QuietHoursEdit) merge(before *sendgate.QuietHours) (sendgate.QuietHours, *sendgate.Error) {
	var q sendgate.QuietHours
	if before != nil {
		q = *before
	}
	if e.Timezone != nil && *e.Timezone != q.Timezone || e.Timezone != nil && *e.Timezone == "" {
		if _, err := quiet.LoadZone(*e.Timezone); err != nil {
			return q, quietFault(sendgate.CodeInvalidTimezone, err)
		}
		q.Timezone = *e.Timezone
	}
	if err := e.mergeWindow(&q); err != nil {
		return q, err
	}
	switch {
	case e.Enabled != nil:
		q.Enabled = *e.Enabled
	case q.Window != nil && (before == nil || before.Window == nil):
		q.Enabled = true // whoever chooses hours wants them
	}
	switch {
	case q.Enabled && q.Window == nil:
		return q, sendgate.Errorf(sendgate.CodeMissingField, "quiet_hours.start", "quiet hours need a start and an end to be enabled")
	case q.Window != nil && q.Timezone == "":
		return q, sendgate.Errorf(sendgate.CodeMissingField, "quiet_hours.timezone", "quiet hours need an IANA time zone, such as Europe/Berlin")
	}
	return q, nil
}

func (e *QuietHoursEdit) mergeWindow(q *sendgate.QuietHours) *sendgate.Error {
	if e.Start == nil && e.End == nil && e.Days == nil {
		return nil
	}
	var start, end string
	var days []string
	if q.Window != nil {
		start, end, days = q.Window.Start.String(), q.Window.End.String(), q.Window.Days.Names()
	}
	if e.Start != nil {
		start = *e.Start
	}
	if e.End != nil {
		end = *e.End
	}
	if e.Days != nil {
		days = *e.Days
	}
	switch {
	case start == "" && e.Start == nil:
		return sendgate.Errorf(sendgate.CodeMissingField, "quiet_hours.start", "quiet hours need a start, such as 22:00")
	case end == "" && e.End == nil:
		return sendgate.Errorf(sendgate.CodeMissingField, "quiet_hours.end", "quiet hours need an end, such as 08:00")
	}
	w, err := quiet.NewWindow(start, end, days)
	if err != nil {
		return quietFault(sendgate.CodeInvalidQuietHours, err)
	}
	q.Window = &w
	return nil
}

// quietFault turns what package quiet says into a refusal.
func quietFault(code sendgate.Code, err error) *sendgate.Error {
	var qe *quiet.Error
	if errors.As(err, &qe) {
		return sendgate.Errorf(code, "quiet_hours."+qe.Field, "%s", qe.Detail)
	}
	return sendgate.Errorf(code, "quiet_hours", "%v", err)
}

func sameQuietHours(a, b sendgate.QuietHours) bool {
	if (a.Window == nil) != (b.Window == nil) || a.Window != nil && *a.Window != *b.Window {
		return false
	}
	return a.Enabled == b.Enabled && a.Timezone == b.Timezone
}

// quietJSON is how a Diff shows quiet hours: as the interface does.
func quietJSON(q *sendgate.QuietHours) json.RawMessage {
	if q == nil {
		return nil
	}
	doc := struct {
		Enabled  bool     `json:"enabled"`
		Start    string   `json:"start,omitempty"`
		End      string   `json:"end,omitempty"`
		Days     []string `json:"days,omitempty"`
		Timezone string   `json:"timezone,omitempty"`
	}{Enabled: q.Enabled, Timezone: q.Timezone}
	if q.Window != nil {
		doc.Start, doc.End, doc.Days = q.Window.Start.String(), q.Window.End.String(), q.Window.Days.Names()
	}
	return jsonOf(doc)
}
