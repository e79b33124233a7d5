package bloom_test

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/internal/redistest"
)

// TestDamagedSnapshots refuses every way in which a file can be wrong, with a
// reason that says which.
func TestDamagedSnapshots(t *testing.T) {
	file := build(t, plan(), keys("a", 100))
	for what, c := range map[string]struct {
		damage func([]byte) []byte
		reason string
	}{
		"empty":               {func([]byte) []byte { return nil }, "too few"},
		"something else":      {func([]byte) []byte { return []byte(strings.Repeat("hello, world. ", 1000)) }, "not a snapshot"},
		"an older format":     {func(b []byte) []byte { binary.LittleEndian.PutUint32(b[8:], 1); return b }, "format is version 1"},
		"a newer format":      {func(b []byte) []byte { binary.LittleEndian.PutUint32(b[8:], 3); return b }, "format is version 3"},
		"the first bytes":     {func(b []byte) []byte { b[50] ^= 1; return b }, "first bytes are damaged"},
		"cut off":             {func(b []byte) []byte { return b[:len(b)-1] }, "cut off"},
		"cut off early":       {func(b []byte) []byte { return b[:70] }, "cut off"},
		"something added":     {func(b []byte) []byte { return append(b, 0) }, "added"},
		"a bit of a word":     {func(b []byte) []byte { b[5000] ^= 4; return b }, "is damaged"},
		"a checksum":          {func(b []byte) []byte { b[len(b)-9] ^= 4; return b }, "its tables are damaged"},
		"the namespace":       {func(b []byte) []byte { b[strings.Index(string(b), `"namespace":"t"`)+13] = 's'; return b }, "damaged"},
		"a byte that is zero": {func(b []byte) []byte { b[4095] = 1; return b }, "nothing belongs"},
	} {
		_, err := load(t, c.damage(append([]byte(nil), file...)))
		if !errors.Is(err, bloom.ErrRefused) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestEveryByteCounts flips a bit of every byte of a small snapshot in turn, of
// the words only of some: they are all alike.
func TestEveryByteCounts(t *testing.T) {
	file := build(t, plan(), keys("a", 3))
	for at := 0; at < len(file); at += 1 + 40*(at/5000) {
		file[at] ^= 1 << (at % 8)
		if _, err := bloom.Parse(file); !errors.Is(err, bloom.ErrRefused) {
			t.Fatalf("bit %d of byte %d: %v", at%8, at, err)
		}
		file[at] ^= 1 << (at % 8)
	}
	if _, err := bloom.Parse(file); err != nil {
		t.Fatal(err)
	}
}

func TestFits(t *testing.T) {
	s, err := load(t, build(t, plan(), keys("a", 3)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Header().Fits("t", 2); err != nil {
		t.Error(err)
	}
	if err := s.Header().Fits("other", 2); !errors.Is(err, bloom.ErrRefused) || !strings.Contains(err.Error(), `"t"`) {
		t.Error(err)
	}
	if err := s.Header().Fits("t", 256); !errors.Is(err, bloom.ErrRefused) || !strings.Contains(err.Error(), "2 partitions") {
		t.Error(err)
	}
}

// TestNothingIsLeftOfPrivateCopies looks into the folder while a copy is mapped.
func TestNothingIsLeftOfPrivateCopies(t *testing.T) {
	dir, file := t.TempDir(), build(t, plan(), keys("a", 3))
	failed := errors.New("no connection")
	for _, fetch := range []func(io.Writer) error{
		func(w io.Writer) error { _, err := w.Write(file); return err },
		func(w io.Writer) error { _, err := w.Write(file[:100]); return err },
		func(io.Writer) error { return failed },
	} {
		s, err := bloom.Load(dir, fetch)
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%v is left after %v", left, err)
		}
		if s != nil && !has(s, optedOut("a", 1)) {
			t.Error("a key is missing")
		}
	}
	if _, err := bloom.Load(filepath.Join(dir, "missing"), nil); err == nil || errors.Is(err, bloom.ErrRefused) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// TestMemoryIsGivenBack loads snapshots that nobody refers to, and waits until
// the machine has none of them mapped.
func TestMemoryIsGivenBack(t *testing.T) {
	file := build(t, plan(), keys("a", 3))
	kept, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := load(t, file); err != nil {
			t.Fatal(err)
		}
	}
	redistest.Until(t, "one snapshot is mapped", func() bool {
		runtime.GC()
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(maps), ".filter (deleted)") == 1
	})
	if !has(kept, optedOut("a", 1)) {
		t.Error("a key is missing")
	}
}

func TestOpenAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.filter")
	if err := os.WriteFile(path, build(t, plan(), keys("a", 3)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := bloom.Open(path)
	if err != nil || !has(s, optedOut("a", 1)) {
		t.Error(err)
	}
	if _, err := bloom.Open(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// FuzzParse changes files and mends their checksums, so that what is behind
// them is reached.
func FuzzParse(f *testing.F) {
	file := build(f, plan(), keys("a", 3))
	f.Add([]byte(nil), 0, true)
	f.Add([]byte("SENDGATE"), 0, false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, 12, true)
	f.Add([]byte(`"shards":65536`), strings.Index(string(file), `"shards"`), true)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, strings.LastIndex(string(file), "}")+1, true)
	f.Fuzz(func(t *testing.T, patch []byte, at int, mend bool) {
		patched := append([]byte(nil), file...)
		if at >= 0 && at < len(patched) {
			copy(patched[at:], patch)
		}
		if mend {
			bloom.Mend(patched)
		}
		s, err := bloom.Parse(patched)
		switch {
		case err != nil && !errors.Is(err, bloom.ErrRefused):
			t.Fatalf("%v", err)
		case err == nil:
			_ = has(s, optedOut("a", 1)) // must not reach beyond
			_ = s.Measure(10, bloom.FixedRandom())
		}
	})
}
