package api

import (
	"errors"
	"net/http"

	"github.com/sendgate/sendgate"
)

// problemKinds is the one table from error code to HTTP status and title.
var problemKinds = map[sendgate.Code]struct {
	status int
	title  string
}{
	sendgate.CodeMalformedJSON:         {http.StatusBadRequest, "The body is not the JSON that is expected here"},
	sendgate.CodeUnknownField:          {http.StatusBadRequest, "The body has a member that is not known here"},
	sendgate.CodeDuplicateField:        {http.StatusBadRequest, "The body has a member twice"},
	sendgate.CodeInvalidUserID:         {http.StatusBadRequest, "The user id is not legal"},
	sendgate.CodeInvalidNotificationID: {http.StatusBadRequest, "The notification id is not legal"},
	sendgate.CodeNotFound:              {http.StatusNotFound, "There is nothing here"},
	sendgate.CodeMethodNotAllowed:      {http.StatusMethodNotAllowed, "The method is not allowed here"},
	sendgate.CodeRevisionMismatch:      {http.StatusPreconditionFailed, "The preferences have another revision"},
	sendgate.CodeBodyTooLarge:          {http.StatusRequestEntityTooLarge, "The body is too large"},
	sendgate.CodeBatchTooLarge:         {http.StatusRequestEntityTooLarge, "The batch has too many items"},
	sendgate.CodeUnsupportedMediaType:  {http.StatusUnsupportedMediaType, "The content type is not application/json"},
	sendgate.CodeMissingField:          {http.StatusUnprocessableEntity, "A member is missing"},
	sendgate.CodeInvalidField:          {http.StatusUnprocessableEntity, "A value is not legal"},
	sendgate.CodeReadOnlyField:         {http.StatusUnprocessableEntity, "A member is read-only"},
	sendgate.CodeUnknownTopic:          {http.StatusUnprocessableEntity, "The catalog does not have the topic"},
	sendgate.CodeUnknownChannel:        {http.StatusUnprocessableEntity, "The catalog does not have the channel"},
	sendgate.CodeUnknownCategory:       {http.StatusUnprocessableEntity, "The catalog does not have the category"},
	sendgate.CodeEssentialTopic:        {http.StatusUnprocessableEntity, "An essential topic cannot be switched off"},
	sendgate.CodeInvalidQuietHours:     {http.StatusUnprocessableEntity, "The quiet hours are not legal"},
	sendgate.CodeInvalidTimezone:       {http.StatusUnprocessableEntity, "The time zone is not known"},
	sendgate.CodeInvalidCap:            {http.StatusUnprocessableEntity, "The frequency cap is not legal"},
	sendgate.CodeDuplicateEntry:        {http.StatusUnprocessableEntity, "An entry is given twice"},
	sendgate.CodeInvalidReason:         {http.StatusUnprocessableEntity, "The reason is not legal"},
	sendgate.CodeInvalidSource:         {http.StatusUnprocessableEntity, "The source is not legal"},
	sendgate.CodeRecordTooLarge:        {http.StatusUnprocessableEntity, "What is stored would become too large"},
	sendgate.CodeStoreUnavailable:      {http.StatusServiceUnavailable, "The store is not available"},
	sendgate.CodeInternal:              {http.StatusInternalServerError, "Something went wrong here"},
}

// problemTypes is what the type of a problem begins with; its code follows.
const problemTypes = "/problems/"

// fault is one refusal as callers see it.
type fault struct {
	Code   sendgate.Code `json:"code"`
	Field  string        `json:"field,omitzero"`
	Detail string        `json:"detail,omitzero"`
}

func faultOf(e *sendgate.Error) fault { return fault{e.Code, e.Field, e.Detail} }

// problem is a refusal as RFC 9457 has it, with the members of a fault.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	fault
	Errors []fault `json:"errors,omitempty"`
}

func (p *problem) code() sendgate.Code { return p.Code }

// headerError is a header that cannot be read, as opposed to one that can and
// is wrong: malformed, where the same code is otherwise unprocessable.
type headerError struct{ err *sendgate.Error }

func (f *headerError) Error() string { return f.err.Error() }
func (f *headerError) Unwrap() error { return f.err }

func malformedHeader(name, format string, args ...any) error {
	return &headerError{sendgate.Errorf(sendgate.CodeInvalidField, name, format, args...)}
}

// faultsOf lists the refusals in an error, at least one. What was underneath
// is not shown; an error that is no refusal shows nothing at all.
func faultsOf(err error) []fault {
	var many sendgate.Errors
	var one *sendgate.Error
	switch {
	case errors.As(err, &many) && len(many) > 0:
		faults := make([]fault, len(many))
		for i, e := range many {
			faults[i] = faultOf(e)
		}
		return faults
	case errors.As(err, &one):
		return []fault{faultOf(one)}
	}
	return []fault{{Code: sendgate.CodeInternal, Detail: "the log has more, under the request id of this answer"}}
}

// problemOf is the problem for an error. Of several refusals the first one
// decides.
func problemOf(err error) *problem {
	faults := faultsOf(err)
	first := faults[0]
	kind, ok := problemKinds[first.Code]
	if !ok {
		kind = problemKinds[sendgate.CodeInternal]
	}
	p := &problem{Type: problemTypes + string(first.Code), Title: kind.title, Status: kind.status, fault: first}
	if len(faults) > 1 {
		p.Errors = faults
	}
	if errors.As(err, new(*headerError)) {
		p.Status = http.StatusBadRequest
	}
	return p
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter, r *http.Request) error {
	switch p.Status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnsupportedMediaType:
		w.Header().Set("Accept", jsonType)
	}
	return writeJSON(w, r, p.Status, "application/problem+json", p)
}
