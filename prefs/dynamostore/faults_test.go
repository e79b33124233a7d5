package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs"
)

// everyCall has each call of a store.
func everyCall(s *Store, user sendgate.UserID) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Get":          func(ctx context.Context) error { _, err := s.Get(ctx, user); return err },
		"GetMany":      func(ctx context.Context) error { return s.GetMany(ctx, []sendgate.UserID{user})[0].Err },
		"Put":          func(ctx context.Context) error { return s.Put(ctx, record(user, 2), 1) },
		"AppendChange": func(ctx context.Context) error { return s.AppendChange(ctx, user, prefs.Change{Revision: 1}) },
		"Changes":      func(ctx context.Context) error { _, err := s.Changes(ctx, user, 0, 10); return err },
		"Pending": func(ctx context.Context) error {
			return s.Pending(ctx, 0, func(prefs.PendingEntry) error { return nil })
		},
		"Scan":          func(ctx context.Context) error { return s.Scan(ctx, 0, 1, func(*prefs.Record) error { return nil }) },
		"ReadDocument":  func(ctx context.Context) error { _, err := s.ReadDocument(ctx, "d"); return err },
		"WriteDocument": func(ctx context.Context) error { return s.WriteDocument(ctx, "d", []byte("body"), 1) },
		"Layout":        func(ctx context.Context) error { _, err := s.Layout(ctx, prefs.Layout{Partitions: 8}); return err },
	}
}

// Whatever goes wrong is an error of the one call that was sent, says where and
// why, and names nobody.
func TestFaults(t *testing.T) {
	const user = sendgate.UserID("somebody@x.io")
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	quoting := `{"__type": "ValidationException", "message": "the key somebody@x.io is not valid"}`
	for name, c := range map[string]struct {
		fault func(*exchange)
		says  string
	}{
		"throttled": {func(e *exchange) {
			e.refuse("ProvisionedThroughputExceededException", "The level of configured provisioned throughput for the table was exceeded.")
		}, "ProvisionedThroughputExceededException (status 400): The level of"},
		"throttled another way": {func(e *exchange) { e.refuse("ThrottlingException", "Rate exceeded") }, "ThrottlingException (status 400): Rate exceeded"},
		"out of order":          {func(e *exchange) { e.refuse("InternalServerError", "") }, "InternalServerError"},
		"a status of 500":       {func(e *exchange) { e.status, e.answer = http.StatusInternalServerError, "{}" }, "status 500"},
		"not allowed": {func(e *exchange) {
			e.refuse("AccessDeniedException", "User: arn:test is not authorized to perform: dynamodb:"+e.action)
		}, "is not authorized to perform"},
		"refused, quoting a key": {func(e *exchange) { e.status, e.answer = http.StatusBadRequest, quoting }, "ValidationException (status 400)"},
		"another program":        {func(e *exchange) { e.status, e.answer = http.StatusOK, "<p>somebody@x.io</p>" }, "not one of DynamoDB's"},
		"of another form": {func(e *exchange) {
			e.status, e.answer = http.StatusOK, `{"Item": "somebody@x.io", "Items": "somebody@x.io", "Attributes": "somebody@x.io", "Responses": "somebody@x.io"}`
		}, "not one of DynamoDB's"},
		"garbled on the way": {func(e *exchange) {
			e.status, e.answer = http.StatusOK, "{}"
			e.header.Set("X-Amz-Crc32", "1")
		}, "checksum"},
		"empty":           {func(e *exchange) { e.status = http.StatusOK }, "empty"},
		"cut short":       {func(e *exchange) { e.status, e.answer = http.StatusOK, `{"Item"`; e.header.Set("Content-Length", "9") }, "ended before"},
		"no answer":       {func(e *exchange) { e.lose, e.status = true, http.StatusOK }, "ended before"},
		"an error in php": {func(e *exchange) { e.status, e.answer = http.StatusBadGateway, "somebody@x.io" }, "not one of DynamoDB's"},
	} {
		t.Run(name, func(t *testing.T) {
			w.set(c.fault)
			for call, do := range everyCall(s, user) {
				err := do(t.Context())
				if err == nil || errors.Is(err, prefs.ErrConflict) || errors.Is(err, limits.ErrConflict) {
					t.Errorf("%s: %v", call, err)
					continue
				}
				if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), w.server.URL) || !strings.Contains(err.Error(), `"t-`) {
					t.Errorf("%s says %q; want the table, the endpoint and %q", call, err, c.says)
				}
				if said := fmt.Sprintf("%+v %#v %q", err, err, errors.Unwrap(err)); strings.Contains(said, "somebody") {
					t.Errorf("%s names a user: %s", call, said)
				}
			}
			if calls := w.sent(); len(calls) != 10 {
				t.Errorf("ten calls were sent as %v", calls)
			}
		})
	}
}

// A server that takes a call and never answers holds nobody beyond their time.
func TestNoAnswerInTime(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	w.set(hangs)
	for call, do := range everyCall(s, "u") {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := do(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want context.DeadlineExceeded", call, err)
		}
		cancel()
	}
	if calls := w.sent(); len(calls) > 10 {
		t.Errorf("ten calls were sent as %v", calls)
	}
}

func TestConnectionRefused(t *testing.T) {
	gone := httptest.NewServer(nil)
	endpoint := gone.URL
	gone.Close()
	_, err := Open(t.Context(), Options{Config: dynamotest.Config(endpoint), TablePrefix: "t", Create: true})
	if err == nil || !strings.Contains(err.Error(), endpoint) || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "\n") {
		t.Errorf("at an endpoint where nobody listens: %v", err)
	}
}

// An item that somebody else has written or moved is an error, and no user's.
func TestDamagedItems(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	ctx, s := t.Context(), w.open(t)
	r := record("somebody@x.io", 1)
	if err := errors.Join(s.Put(ctx, r, 0), s.AppendChange(ctx, r.User, r.Pending[0])); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Layout(ctx, prefs.Layout{Partitions: 8}); err != nil {
		t.Fatal(err)
	}
	for name, items := range map[string]string{
		"no body":              `{"user": {"S": "somebody@x.io"}, "revision": {"N": "1"}, "name": {"S": "layout"}}`,
		"of another version":   `{"user": {"S": "somebody@x.io"}, "revision": {"N": "1"}, "body": {"B": "OXNvbWVib2R5QHguaW8="}}`,
		"another's":            `{"user": {"S": "somebody else"}, "revision": {"N": "1"}, "body": {"B": "MXsidXNlciI6ICJ1IiwgInJldiI6IDF9"}}`,
		"of another revision":  `{"user": {"S": "u"}, "revision": {"N": "2"}, "body": {"B": "MXsidXNlciI6ICJ1IiwgInJldiI6IDF9"}}`,
		"no key":               `{"body": {"B": "MXsidXNlciI6ICJ1IiwgInJldiI6IDF9"}}`,
		"a number for a user":  `{"user": {"N": "1"}, "since": {"N": "1"}, "revision": {"N": "1"}, "body": {"B": "MXsidXNlciI6ICJ1IiwgInJldiI6IDF9"}}`,
		"a fraction for since": `{"user": {"S": "somebody@x.io"}, "since": {"N": "1.5"}, "revision": {"N": "1.5"}, "body": {"B": "MXsidXNlciI6ICJ1IiwgInJldiI6IDF9"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w.set(func(e *exchange) {
				e.status, e.answer = http.StatusOK, fmt.Sprintf(`{"Item": %s, "Items": [%[1]s], "Count": 1, "Responses": {"t-records": [%[1]s]}}`, items)
			})
			for call, do := range everyCall(s, "somebody@x.io") {
				if call == "Put" || call == "AppendChange" || call == "WriteDocument" {
					continue // these read nothing
				}
				err := do(ctx)
				if err == nil || !strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "somebody") {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}
