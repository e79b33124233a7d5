package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/sendgate/sendgate/prefs"
)

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
