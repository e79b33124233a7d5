package dynamostore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/prefs"
)

// The server of the tests reads consistently whether it is asked to or not.
func TestReadsAreConsistent(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	var mu sync.Mutex
	consistent := map[string]any{}
	w.set(func(e *exchange) {
		mu.Lock()
		defer mu.Unlock()
		index, _ := e.ask["IndexName"].(string)
		batch, _ := e.ask["RequestItems"].(map[string]any)
		for table, of := range batch {
			consistent[e.action+" "+table] = of.(map[string]any)["ConsistentRead"]
		}
		if e.action != "PutItem" && batch == nil {
			consistent[strings.TrimSpace(fmt.Sprint(e.action, " ", e.ask["TableName"], " ", index))] = e.ask["ConsistentRead"]
		}
	})
	for call, do := range everyCall(s, "u") {
		if err := do(t.Context()); err != nil && call != "Put" && call != "WriteDocument" {
			t.Errorf("%s: %v", call, err)
		}
	}
	want := map[string]any{
		"GetItem t-records": true, "BatchGetItem t-records": true, "GetItem t-meta": true, "Query t-changes": true, "Scan t-records": true,
		"Query t-records pending": nil, // of an index it cannot be asked for
	}
	if !maps.Equal(consistent, want) {
		t.Errorf("asked for consistent reads: %v, want %v", consistent, want)
	}
}

// A record is in the index only while something is pending on it.
func TestIndexIsSparse(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	var attributes []string
	w.set(func(e *exchange) {
		put, _ := e.ask["Item"].(map[string]any)
		attributes = slices.Sorted(maps.Keys(put))
	})
	r := record("u", 1)
	for _, c := range []struct {
		pending []prefs.Change
		want    []string
	}{
		{r.Pending, []string{"body", "revision", "shard", "since", "user"}},
		{nil, []string{"body", "revision", "user"}},
		{[]prefs.Change{{ID: "without a time"}}, []string{"body", "revision", "shard", "since", "user"}},
	} {
		r.Pending = c.pending
		if err := s.Put(t.Context(), r, r.Revision-1); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(attributes, c.want) {
			t.Errorf("with %d changes pending the item has %v", len(c.pending), attributes)
		}
		r.Revision++
	}
	err := s.Pending(t.Context(), prefs.PendingShard("u"), func(e prefs.PendingEntry) error {
		if e.User != "u" || !e.Since.IsZero() {
			t.Errorf("listed as %+v", e)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
