// Package storetest owns what every prefs.Store has in common: a suite that
// checks the promises that package prefs writes beside its interfaces, and
// nothing beyond them. What one store promises besides is tested beside it.
//
// The pending index may lag behind the records: the suite waits for it, with a
// limit. Everything else must be true at once.
package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// Limits of one test, and of the pending index's lag.
const (
	testLimit = time.Minute
	lagLimit  = 15 * time.Second
	lagPoll   = 5 * time.Millisecond
)

// Run tests a store. Each call of open returns a store in which nothing is
// stored, and leaves closing it to t.Cleanup. No two stores need to be open at
// the same time.
func Run(t *testing.T, open func(t *testing.T) prefs.Store) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"records", recordTests},
		{"conditions", conditionTests},
		{"pending", pendingTests},
		{"audit", auditTests},
		{"scan", scanTests},
		{"layout", layoutTests},
		{"documents", documentTests},
		{"context", contextTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, one := range group.tests {
				t.Run(one.name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), testLimit)
					defer cancel()
					one.run(ctx, t, open(t))
				})
			}
		})
	}
}

// test is one test of the suite, on a store of its own.
type test struct {
	name string
	run  func(ctx context.Context, t *testing.T, s prefs.Store)
}

// get reads a record that must be readable.
func get(ctx context.Context, t *testing.T, s prefs.Store, user sendgate.UserID) *prefs.Record {
	t.Helper()
	r, err := s.Get(ctx, user)
	if err != nil {
		t.Fatalf("Get(%q): %v", user, err)
	}
	return r
}

// put stores a record that must be storable.
func put(ctx context.Context, t *testing.T, s prefs.Store, r *prefs.Record, ifRevision int64) {
	t.Helper()
	if err := s.Put(ctx, r, ifRevision); err != nil {
		t.Fatalf("Put(%q, revision %d, if %d): %v", r.User, r.Revision, ifRevision, err)
	}
}

// diff compares what came back with what was stored. Nil and empty lists are
// the same, as are the same instants in other zones.
func diff(want, got any) string {
	isJSON := func(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[json.RawMessage]() }
	return cmp.Diff(want, got,
		cmp.FilterPath(func(p cmp.Path) bool { return !isJSON(p) }, cmpopts.EquateEmpty()),
		// JSON at once: byte by byte takes minutes for what is large.
		cmp.FilterPath(isJSON, cmp.Comparer(bytes.Equal)),
	)
}

// stored checks that a record is exactly as wanted.
func stored(ctx context.Context, t *testing.T, s prefs.Store, want *prefs.Record) {
	t.Helper()
	if d := diff(want, get(ctx, t, s, want.User)); d != "" {
		t.Errorf("the record of %q (-want +got):\n%s", want.User, d)
	}
}

// eventually waits until a condition of the pending index holds.
func eventually(ctx context.Context, t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, lagLimit)
	defer cancel()
	poll := time.NewTicker(lagPoll)
	defer poll.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("the pending index did not come to this: %s", what)
		}
	}
}
