package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/storetest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		runChild(path)
		return
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) prefs.Store { return openAt(t, newPath(t)) })
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "prefs.db") }

func openAt(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func record(user sendgate.UserID, revision int64) *prefs.Record {
	at := time.UnixMilli(1_700_000_000_000 + revision).UTC()
	return &prefs.Record{
		User: user,
		Preferences: sendgate.Preferences{
			Revision: revision, UpdatedAt: at,
			Settings: sendgate.Settings{{Topic: "promotions", Channel: "email"}: false},
		},
		Pending: []prefs.Change{{ID: fmt.Sprint("id-", revision), Revision: revision, At: at}},
	}
}

func TestReopen(t *testing.T) {
	ctx, path := t.Context(), newPath(t)
	s := openAt(t, path)
	if _, err := s.Layout(ctx, prefs.Layout{Partitions: 8}); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteDocument(ctx, "d", []byte("body"), 0); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		r := record(sendgate.UserID(fmt.Sprint("user-", i)), 1)
		if err := errors.Join(s.Put(ctx, r, 0), s.AppendChange(ctx, r.User, r.Pending[0])); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openAt(t, path)
	if layout, err := s.Layout(ctx, prefs.Layout{Partitions: 16}); err != nil || layout.Partitions != 8 {
		t.Errorf("after reopening: Layout = %v, %v", layout, err)
	}
	if d, err := s.ReadDocument(ctx, "d"); err != nil || d.Revision != 1 || string(d.Body) != "body" {
		t.Errorf("after reopening: ReadDocument = %v, %v", d, err)
	}
	for i := range 50 {
		user := sendgate.UserID(fmt.Sprint("user-", i))
		if r, err := s.Get(ctx, user); err != nil || r.Revision != 1 || len(r.Pending) != 1 {
			t.Errorf("after reopening: Get(%q) = %v, %v", user, r, err)
		}
		if changes, err := s.Changes(ctx, user, 0, 10); err != nil || len(changes) != 1 {
			t.Errorf("after reopening: Changes(%q) = %v, %v", user, changes, err)
		}
	}
	if n := countPending(t, s); n != 50 {
		t.Errorf("after reopening %d of 50 users are pending", n)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode: %v, %v", info.Mode(), err)
	}
}

func countPending(t *testing.T, s *Store) (n int) {
	t.Helper()
	for shard := range prefs.PendingShards {
		err := s.Pending(t.Context(), shard, func(prefs.PendingEntry) error { n++; return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestClosed(t *testing.T) {
	ctx, path := t.Context(), newPath(t)
	s := openAt(t, path)
	if err := s.Put(ctx, record("u", 1), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	_, getErr := s.Get(ctx, "u")
	_, changesErr := s.Changes(ctx, "u", 0, 1)
	_, layoutErr := s.Layout(ctx, prefs.Layout{Partitions: 8})
	_, documentErr := s.ReadDocument(ctx, "d")
	for call, err := range map[string]error{
		"Get": getErr, "Changes": changesErr, "Layout": layoutErr, "ReadDocument": documentErr,
		"WriteDocument": s.WriteDocument(ctx, "d", nil, 0),
		"Put":           s.Put(ctx, record("u", 2), 1),
		"AppendChange":  s.AppendChange(ctx, "u", prefs.Change{Revision: 1}),
		"Pending":       s.Pending(ctx, 0, func(prefs.PendingEntry) error { return nil }),
		"Scan":          s.Scan(ctx, 0, 1, func(*prefs.Record) error { return nil }),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", call, err)
		}
	}
	if _, err := openAt(t, path).Get(ctx, "u"); err != nil {
		t.Errorf("after closing, another one opens: %v", err)
	}
}

func TestIllegalArguments(t *testing.T) {
	ctx, s := t.Context(), openAt(t, newPath(t))
	for _, user := range []sendgate.UserID{"", "a\x00b", "\xff", sendgate.UserID(strings.Repeat("x", 257))} {
		_, getErr := s.Get(ctx, user)
		_, changesErr := s.Changes(ctx, user, 0, 1)
		for call, err := range map[string]error{
			"Get": getErr, "Changes": changesErr,
			"Put": s.Put(ctx, record(user, 1), 0), "AppendChange": s.AppendChange(ctx, user, prefs.Change{Revision: 1}),
		} {
			if sendgate.CodeOf(err) != sendgate.CodeInvalidUserID {
				t.Errorf("%s of an illegal id: %v", call, err)
			}
		}
	}
	tooLarge := record("u", 1)
	tooLarge.Pending[0].Reason = strings.Repeat("x", prefs.MaxRecordBytes)
	if err := s.Put(ctx, tooLarge, 0); sendgate.CodeOf(err) != sendgate.CodeRecordTooLarge {
		t.Errorf("a record that is too large: %v", err)
	}
	if r, err := s.Get(ctx, "u"); err != nil || r.Revision != 0 {
		t.Errorf("after a record that is too large: %v, %v", r, err)
	}
	for name, bytes := range map[string]int{"": 1, "d": limits.MaxDocumentBytes + 1} {
		if s.WriteDocument(ctx, name, make([]byte, bytes), 0) == nil {
			t.Errorf("a document %q of %d bytes was stored", name, bytes)
		}
	}
	if _, err := s.Layout(ctx, prefs.Layout{}); err == nil {
		t.Error("a layout without partitions was stored")
	}
	for _, n := range []int{-1, prefs.PendingShards} {
		if s.Pending(ctx, n, nil) == nil || s.Scan(ctx, n, prefs.PendingShards, nil) == nil {
			t.Errorf("shard or segment %d of %d was read", n, prefs.PendingShards)
		}
	}
	if changes, err := s.Changes(ctx, "u", 0, -1); err != nil || len(changes) != 0 {
		t.Errorf("at most -1 changes: %v, %v", changes, err)
	}
}
