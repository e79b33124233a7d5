package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/prefs"
)

// fill stores a number of users, all pending in one shard, with three changes
// each, and lists them.
func fill(t *testing.T, s *Store, shard, users int) map[sendgate.UserID]bool {
	t.Helper()
	all := map[sendgate.UserID]bool{}
	for i := 0; len(all) < users; i++ {
		user := sendgate.UserID(fmt.Sprint("user-", i))
		if prefs.PendingShard(user) != shard {
			continue
		}
		all[user] = true
		r := record(user, 1)
		r.Pending[0].At = time.UnixMilli(int64(i*7919%1000) + 1).UTC()
		if err := s.Put(t.Context(), r, 0); err != nil {
			t.Fatal(err)
		}
		for revision := range int64(3) {
			if err := s.AppendChange(t.Context(), user, prefs.Change{Revision: revision + 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// Lists of many pages, most of them empty, have every entry once and in its
// order: the server reads two items a page and hides all but a few.
func TestPages(t *testing.T) {
	const shard, users = 3, 25
	w := on(t, dynamotest.Start(t))
	ctx, s := t.Context(), w.open(t)
	all := fill(t, s, shard, users)
	pages := func(filter string) func(e *exchange) {
		return func(e *exchange) {
			if e.action != "Query" && e.action != "Scan" {
				return
			}
			if e.ask["Limit"] != 1.0 {
				e.ask["Limit"] = 2
			}
			if filter == "" {
				return
			}
			e.ask["FilterExpression"] = "contains(#filtered, :filtered)"
			names, _ := e.ask["ExpressionAttributeNames"].(map[string]any)
			values, _ := e.ask["ExpressionAttributeValues"].(map[string]any)
			if names == nil {
				names, values = map[string]any{}, map[string]any{}
			}
			names["#filtered"], values[":filtered"] = attrUser, map[string]any{"S": filter}
			e.ask["ExpressionAttributeNames"], e.ask["ExpressionAttributeValues"] = names, values
		}
	}
	for _, filter := range []string{"", "7"} {
		w.set(pages(filter))
		want := 0
		for user := range all {
			if strings.Contains(string(user), filter) {
				want++
			}
		}
		seen := map[sendgate.UserID]bool{}
		for segment := range 2 {
			err := s.Scan(ctx, segment, 2, func(r *prefs.Record) error { seen[r.User] = true; return nil })
			if err != nil {
				t.Error(err)
			}
		}
		if len(seen) != want || w.count("Scan") < users/2 {
			t.Errorf("%d of %d users are scanned in %d pages", len(seen), want, w.count("Scan"))
		}
		clear(seen)
		var last time.Time
		err := s.Pending(ctx, shard, func(e prefs.PendingEntry) error {
			if seen[e.User] || e.Since.Before(last) {
				t.Errorf("%q since %v comes twice, or after %v", e.User, e.Since, last)
			}
			seen[e.User], last = true, e.Since
			return nil
		})
		if err != nil || len(seen) != want || w.count("Query") < users/2 {
			t.Errorf("%d of %d pending users are listed in %d pages, %v", len(seen), want, w.count("Query"), err)
		}
	}
	w.set(pages(""))
	for user := range all {
		changes, err := s.Changes(ctx, user, 0, 10)
		if err != nil || len(changes) != 3 || changes[2].Revision != 3 {
			t.Errorf("changes: %v, %v", changes, err)
		}
		if changes, err = s.Changes(ctx, user, 0, 1); err != nil || len(changes) != 1 || changes[0].Revision != 1 {
			t.Errorf("the first change: %v, %v", changes, err)
		}
		break
	}
}

// A segment that fails, on whichever page, is an error, whatever the others do.
func TestFailingSegment(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	fill(t, s, 3, 30)
	w.set(func(e *exchange) {
		if e.action != "Scan" {
			return
		}
		e.ask["Limit"] = 2
		if e.ask["Segment"] == 2.0 && e.ask["ExclusiveStartKey"] != nil {
			e.refuse("InternalServerError", "The request processing has failed.")
		}
	})
	var all sync.WaitGroup
	outcomes := make([]error, 4)
	for segment := range outcomes {
		all.Go(func() {
			outcomes[segment] = s.Scan(t.Context(), segment, 4, func(*prefs.Record) error { return nil })
		})
	}
	all.Wait()
	for segment, err := range outcomes {
		if (err != nil) != (segment == 2) {
			t.Errorf("segment %d: %v", segment, err)
		}
	}
}

// doer plays DynamoDB without a network, so that time can be made to pass.
type doer func(action string) string

func (d doer) Do(r *http.Request) (*http.Response, error) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(d(action))),
	}, nil
}

// bareStore is a store on it, of tables that nobody has looked for.
func bareStore(t *testing.T, d doer, units int) *Store {
	t.Helper()
	c := dynamotest.Config("http://dynamodb.test")
	c.HTTPClient = d
	s, err := newStore(Options{Config: c, TablePrefix: "t", ScanUnitsPerSecond: units})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScanRate(t *testing.T) {
	const pages, cost, segments = 10, 128, 4
	for _, c := range []struct {
		units int
		takes time.Duration // what is beyond the first second's worth
	}{
		{100, (segments*pages*cost/100 - 1) * time.Second},
		{1000, 4120 * time.Millisecond},
		{100_000, 0},
		{0, 0},
	} {
		t.Run(fmt.Sprint(c.units), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				left := segments * pages
				s := bareStore(t, func(string) string {
					mu.Lock()
					defer mu.Unlock()
					if left--; left < segments {
						return fmt.Sprintf(`{"ConsumedCapacity": {"CapacityUnits": %d}}`, cost)
					}
					return fmt.Sprintf(`{"ConsumedCapacity": {"CapacityUnits": %d.0}, "LastEvaluatedKey": {"user": {"S": "u"}}}`, cost)
				}, c.units)
				began := time.Now()
				var all sync.WaitGroup
				for segment := range segments {
					all.Go(func() {
						if err := s.Scan(t.Context(), segment, segments, nil); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if took := time.Since(began); (took - c.takes).Abs() > time.Second {
					t.Errorf("it took %s, want about %s", took, c.takes)
				}
			})
		})
	}
}

// A scan that waits for its rate ends with its context.
func TestScanRateEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareStore(t, func(string) string {
			return `{"ConsumedCapacity": {"CapacityUnits": 50}, "LastEvaluatedKey": {"user": {"S": "u"}}}`
		}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		time.AfterFunc(30*time.Second, cancel)
		if err := s.Scan(ctx, 0, 1, nil); err == nil || time.Since(began) != 30*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Scan(soon, 0, 1, nil); err == nil {
			t.Error("a scan beyond its deadline")
		}
	})
}

// A table is waited for while it is being made, also where the server does not
// know of it yet, and not for ever.
func TestWaitsForTables(t *testing.T) {
	const creating, deleting = `{"Table": {"TableStatus": "CREATING"}}`, `{"Table": {"TableStatus": "DELETING"}}`
	active := `{"Table": {"TableStatus": "ACTIVE",
		"AttributeDefinitions": [{"AttributeName": "name", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "name", "KeyType": "HASH"}]}}`
	for name, c := range map[string]struct {
		answers []string // the last one stays
		says    string
	}{
		"at last":  {append(slices.Repeat([]string{creating}, 20), active), ""},
		"never":    {[]string{creating}, "still being created"},
		"deleted":  {[]string{creating, deleting}, "DELETING"},
		"nameless": {[]string{`{}`}, `the state ""`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := 0
				s := bareStore(t, func(string) string {
					i++
					return c.answers[min(i, len(c.answers))-1]
				}, 0)
				began := time.Now()
				err := s.await(t.Context(), s.tables.meta)
				if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %q", err, c.says)
				}
				if took := time.Since(began); took > readyLimit {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A page of what is pending that gets no answer is given up, though its caller
// would wait.
func TestAPageThatHangs(t *testing.T) {
	w := on(t, dynamotest.Start(t))
	s := w.open(t)
	w.set(hangs)
	if err := s.Pending(t.Context(), 0, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want context.DeadlineExceeded", err)
	}
}
