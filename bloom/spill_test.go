package bloom_test

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sendgate/sendgate/bloom"
)

// TestKeysBeyondTheMemory builds with memory for all keys, for some and for
// none. Nothing has a name in the folder where the others wait.
func TestKeysBeyondTheMemory(t *testing.T) {
	const n = 300_000
	for _, memory := range []int64{64 << 20, 1 << 20, 0} {
		p := plan()
		p.KeyMemory, p.WorkDir = memory, t.TempDir()
		built, err := bloom.Build(t.Context(), p, keys("a", n), keys("b", n), keys("", 0))
		if err != nil {
			t.Fatal(err)
		}
		// What is kept in memory may be a bucket's share less than there is room for.
		if kept := 2*n*8 - built.Spilled(); kept < 0 && memory > 0 || kept > memory+16<<10 && memory <= 1<<20 {
			t.Errorf("%d bytes of memory: %d bytes of keys are on disk", memory, built.Spilled())
		}
		if left, _ := os.ReadDir(p.WorkDir); len(left) > 0 {
			t.Errorf("%v is in the folder", left)
		}
		s, err := bloom.Load(t.TempDir(), func(w io.Writer) error { _, err := built.WriteTo(w); return err })
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if !has(s, optedOut("a", i)) || !has(s, optedOut("b", i)) {
				t.Fatalf("%d bytes of memory: user %d is missing", memory, i)
			}
		}
		if h := s.Header(); h.Keys.OptOuts != 2*n || h.OptOuts.Keys < 2*n || h.FalsePositiveRate() > 1.1e-6 {
			t.Errorf("%d bytes of memory: %+v", memory, h)
		}
		if err := built.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestADiskThatIsFull fails with a reason, whether it is keys or the filter that
// there is no room for.
func TestADiskThatIsFull(t *testing.T) {
	for what, c := range map[string]struct {
		room   uint64
		memory int64
	}{
		"keep keys on disk": {64 << 10, 0},
		"write the filter":  {64 << 10, 64 << 20},
	} {
		p := plan()
		p.KeyMemory, p.WorkDir = c.memory, t.TempDir()
		limitFiles(t, c.room, func() {
			_, err := bloom.Build(t.Context(), p, keys("a", 100_000))
			if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "too large") {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	p := plan()
	p.WorkDir = filepath.Join(t.TempDir(), "missing")
	if _, err := bloom.Build(t.Context(), p, keys("a", 100_000)); err == nil || !strings.Contains(err.Error(), p.WorkDir) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// limitFiles keeps files from becoming larger, which fails in the same way as a
// disk without room.
func limitFiles(t *testing.T, size uint64, meanwhile func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ) // so that it is an error
	defer signal.Reset(syscall.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
}
