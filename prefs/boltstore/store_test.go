package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
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

func TestOpenRefuses(t *testing.T) {
	asBolt := func(fn func(tx *bbolt.Tx) error) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(fn), db.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(data []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"text", write([]byte("listen: 127.0.0.1:8080\n")), "not a Sendgate store"},
		{"much text", write(bytes.Repeat([]byte("0123456789abcdef"), 4096)), "not a Sendgate store"},
		{"zeros", write(make([]byte, 1<<16)), "not a Sendgate store"},
		{"a folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "no regular file"},
		{"another program's bbolt file", asBolt(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("accounts"))
			return err
		}), "another program's"},
		{"another program's meta bucket", asBolt(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket(bucketMeta)
			return err
		}), "another program's"},
		{"another format version", asBolt(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket(bucketMeta)
			return errors.Join(err, b.Put(keyFormat, []byte("sendgate-prefs 2")))
		}), `"sendgate-prefs 2"`},
		{"a bucket lost", asBolt(func(tx *bbolt.Tx) error {
			return errors.Join(initialise(tx), tx.DeleteBucket(bucketPending))
		}), `no bucket "pending"`},
		{"cut short", func(t *testing.T, path string) {
			asBolt(initialise)(t, path)
			if err := os.Truncate(path, 3*int64(os.Getpagesize())); err != nil {
				t.Fatal(err)
			}
		}, "cut short"},
		{"in a folder that is not there", func(*testing.T, string) {}, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := newPath(t)
			if c.want == "no such file" {
				path = filepath.Join(path, "prefs.db")
			}
			c.make(t, path)
			before, _ := os.ReadFile(path)
			s, err := Open(path)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("the error %q does not say %q and the path", err, c.want)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// A process that ends between creating the file and giving it buckets leaves
// one of these two.
func TestOpenUnfinishedFile(t *testing.T) {
	empty := newPath(t)
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bare := newPath(t)
	db, err := bbolt.Open(bare, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, bare} {
		s := openAt(t, path)
		if err := s.Put(t.Context(), record("u", 1), 0); err != nil {
			t.Error(err)
		}
	}
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
	for call, err := range map[string]error{
		"Get": getErr, "Changes": changesErr, "Layout": layoutErr,
		"Put":          s.Put(ctx, record("u", 2), 1),
		"AppendChange": s.AppendChange(ctx, "u", prefs.Change{Revision: 1}),
		"Pending":      s.Pending(ctx, 0, func(prefs.PendingEntry) error { return nil }),
		"Scan":         s.Scan(ctx, 0, 1, func(*prefs.Record) error { return nil }),
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

// Whatever is wrong in the file is an error that says in which bucket, and not
// of whom.
func TestDamage(t *testing.T) {
	const user = "jane@example.com"
	for _, c := range []struct {
		name   string
		bucket []byte
		key    []byte
		damage func(value []byte) []byte
	}{
		{"no head", bucketRecords, recordKey(user), func(v []byte) []byte { return v[:headBytes-1] }},
		{"empty", bucketRecords, recordKey(user), func([]byte) []byte { return nil }},
		{"pending neither 0 nor 1", bucketRecords, recordKey(user), func(v []byte) []byte { v[orderedBytes] = 2; return v }},
		{"head of another revision", bucketRecords, recordKey(user), func(v []byte) []byte { v[orderedBytes-1]++; return v }},
		{"no body", bucketRecords, recordKey(user), func(v []byte) []byte { return v[:headBytes] }},
		{"half a body", bucketRecords, recordKey(user), func(v []byte) []byte { return v[:len(v)-9] }},
		{"somebody else's", bucketRecords, recordKey(user), func(v []byte) []byte { return bytes.Replace(v, []byte("jane"), []byte("jame"), 1) }},
		{"half a change", bucketChanges, changeKey(user, 1), func(v []byte) []byte { return v[:len(v)-9] }},
		{"another revision's change", bucketChanges, changeKey(user, 1), func(v []byte) []byte { return bytes.Replace(v, []byte(`"rev":1`), []byte(`"rev":2`), 1) }},
		{"half a key", bucketPending, []byte{byte(prefs.PendingShard(user)), 0}, func([]byte) []byte { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, s := t.Context(), openAt(t, newPath(t))
			r := record(user, 1)
			if err := errors.Join(s.Put(ctx, r, 0), s.AppendChange(ctx, user, r.Pending[0])); err != nil {
				t.Fatal(err)
			}
			err := s.db.Update(func(tx *bbolt.Tx) error {
				b := tx.Bucket(c.bucket)
				return b.Put(c.key, c.damage(bytes.Clone(b.Get(c.key))))
			})
			if err != nil {
				t.Fatal(err)
			}
			switch string(c.bucket) {
			case string(bucketRecords):
				_, err = s.Get(ctx, user)
				if scan := s.Scan(ctx, 0, 1, func(*prefs.Record) error { return nil }); scan == nil {
					t.Error("Scan reads it")
				}
			case string(bucketChanges):
				_, err = s.Changes(ctx, user, 0, 10)
			default:
				err = s.Pending(ctx, prefs.PendingShard(user), func(prefs.PendingEntry) error { return nil })
			}
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", c.bucket)) {
				t.Errorf("the error %v does not name the bucket %q", err, c.bucket)
			}
			if err != nil && strings.Contains(err.Error(), "jane") {
				t.Errorf("the error %v names the user", err)
			}
		})
	}
	// A damaged head refuses a write too, and that write alone.
	ctx, s := t.Context(), openAt(t, newPath(t))
	err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketRecords).Put(recordKey(user), []byte("short")) })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(ctx, record(user, 1), 0); err == nil || errors.Is(err, prefs.ErrConflict) {
		t.Errorf("a write over a damaged record: %v", err)
	}
	if err := s.Put(ctx, record("u", 1), 0); err != nil {
		t.Error(err)
	}
}

// What is called for an entry may write as much as it likes: a scan that held a
// transaction open would stop the file from growing its mapping, and hang.
func TestWriteWithinScan(t *testing.T) {
	s := openAt(t, newPath(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 20 {
		if err := s.Put(ctx, record(sendgate.UserID(fmt.Sprint("user-", i)), 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	blob := strings.Repeat("x", 300<<10)
	for _, walk := range []func() error{
		func() error {
			return s.Scan(ctx, 0, 1, func(r *prefs.Record) error {
				r.Pending[0].Reason = blob
				return s.Put(ctx, r, r.Revision)
			})
		},
		func() error {
			return s.Pending(ctx, 3, func(e prefs.PendingEntry) error {
				r, err := s.Get(ctx, e.User)
				if err != nil {
					return err
				}
				r.Pending = nil
				return s.Put(ctx, r, r.Revision)
			})
		},
	} {
		if err := walk(); err != nil {
			t.Error(err)
		}
	}
}

func TestSegmentsCoverAllSlots(t *testing.T) {
	for _, segments := range []int{1, 2, 3, 7, 16, 1000, slots - 1, slots, slots + 1, 3 * slots} {
		last := []byte{0, 0}
		for segment := range segments {
			from, to := segmentStart(segment, segments), segmentStart(segment+1, segments)
			if !bytes.Equal(from, last) || (to != nil && bytes.Compare(to, from) < 0) {
				t.Fatalf("segment %d of %d is [%x, %x), after one that ended at %x", segment, segments, from, to, last)
			}
			last = to
		}
		if last != nil {
			t.Errorf("%d segments end at %x", segments, last)
		}
	}
	const most = int(^uint(0) >> 1)
	if from := segmentStart(most-1, most); !bytes.Equal(from, []byte{0xff, 0xff}) {
		t.Errorf("the last of as many segments as there can be starts at %x", from)
	}
}
