package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/dynamotest"
)

// keysOf are the keys that a batch of reads asks for.
func keysOf(e *exchange) (of map[string]any, keys []any) {
	of, _ = e.ask["RequestItems"].(map[string]any)["t-records"].(map[string]any)
	keys, _ = of["Keys"].([]any)
	return of, keys
}

// What the server leaves for later is asked for again, and is nobody of whom
// nothing is stored.
func TestUnprocessedKeys(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	var users []sendgate.UserID
	for i := range 40 {
		user := sendgate.UserID(fmt.Sprint("u", i))
		users = append(users, user)
		if err := s.Put(t.Context(), record(user, 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	w.set(func(e *exchange) {
		if e.action != "BatchGetItem" {
			return
		}
		of, keys := keysOf(e)
		if len(keys) <= 5 {
			return
		}
		of["Keys"] = keys[:5] // the server does no more at once
		w.pass(e)
		var later []string
		for _, key := range keys[5:] {
			later = append(later, fmt.Sprintf(`{"user": {"S": %q}}`, key.(map[string]any)["user"].(map[string]any)["S"]))
		}
		e.answer = strings.Replace(e.answer, `"UnprocessedKeys":{}`, `"UnprocessedKeys":{"t-records":{"Keys":[`+strings.Join(later, ",")+`]}}`, 1)
		e.header.Del("X-Amz-Crc32")
	})
	for i, found := range s.GetMany(t.Context(), users) {
		if found.Err != nil || found.Record.Revision != 1 || found.Record.User != users[i] {
			t.Errorf("%s: %+v, %v", users[i], found.Record, found.Err)
		}
	}
	if n := w.count("BatchGetItem"); n != 8 {
		t.Errorf("%d calls", n)
	}
}

// A server that leaves everything for later holds nobody beyond their time.
func TestNothingIsProcessed(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	w.set(func(e *exchange) {
		if calls++; calls == 3 {
			cancel()
		}
		e.status, e.answer = 200, `{"Responses": {}, "UnprocessedKeys": {"t-records": {"Keys": [{"user": {"S": "u"}}]}}}`
	})
	if found := s.GetMany(ctx, []sendgate.UserID{"u"})[0]; !errors.Is(found.Err, context.Canceled) || found.Record != nil {
		t.Errorf("%+v", found)
	}
}

// An answer that is not whole is an error of everybody in it.
func TestAnswersThatAreNotWhole(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	for _, answer := range []string{
		`{}`, `{"Responses": {}}`, `{"Responses": {"other": []}}`, `{"UnprocessedKeys": {"t-records": {"Keys": [{"user": {"S": "u"}}]}}}`,
		`{"Responses": {"t-records": [{"user": {"S": "somebody else"}}]}}`,
	} {
		w.set(func(e *exchange) { e.status, e.answer = 200, answer })
		for _, found := range s.GetMany(t.Context(), []sendgate.UserID{"u", "v"}) {
			if found.Err == nil || found.Record != nil {
				t.Errorf("%s is taken for %+v", answer, found)
			}
		}
	}
}
