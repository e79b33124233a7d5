package bloom_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"sync"
	"testing"

	plain "github.com/bits-and-blooms/bloom/v3"
	"golang.org/x/sys/unix"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
)

// benchKeys is how many opt-outs the filters of the benchmarks have;
// SENDGATE_BENCH_KEYS has another number.
func benchKeys() int {
	if n, err := strconv.Atoi(os.Getenv("SENDGATE_BENCH_KEYS")); err == nil {
		return n
	}
	return 10_000_000
}

// benchFilters are both filters of the same keys at the same rate.
var benchFilters = sync.OnceValue(func() (f struct {
	plain *plain.BloomFilter
	live  *bloom.Live
	over  *bloom.Overlay
	users []sendgate.UserID
}) {
	n := benchKeys()
	f.plain = plain.NewWithEstimates(uint(n), 5e-7)
	for i := range n {
		f.plain.AddString(plainKey(benchUser(i)))
	}
	p := plan()
	p.Memory, p.KeyMemory = 16<<30, 4<<30
	built, err := bloom.Build(context.Background(), p, numbered(0, n))
	if err != nil {
		panic(err)
	}
	s, err := bloom.Load("", func(w io.Writer) error { _, err := built.WriteTo(w); return err })
	if err != nil {
		panic(err)
	}
	f.over = bloom.NewOverlay(bloom.DefaultOverlaySize)
	f.over.SetLive(true)
	f.live = bloom.NewLive(f.over, func(sendgate.UserID, sendgate.Setting) {})
	bloom.Use(f.live, s)
	for i := range 1 << 20 {
		f.users = append(f.users, benchUser(i*7919%n))
	}
	return f
})

func benchUser(i int) sendgate.UserID { return sendgate.UserID("u_" + strconv.Itoa(i)) }

func plainKey(user sendgate.UserID) string { return string(user) + "|promotions|push" }

// numbered are the opt-outs of users from one number to another.
func numbered(from, to int) iter.Seq2[bloom.Key, error] {
	return func(yield func(bloom.Key, error) bool) {
		settings := sendgate.Settings{promotions: false}
		for i := from; i < to; i++ {
			for k := range bloom.KeysOf(sendgate.Consent{User: benchUser(i), Settings: settings}, covers) {
				if !yield(k, nil) {
					return
				}
			}
		}
	}
}

// BenchmarkReject compares what it takes to find an opt-out: a plain filter of
// the library, with its key made before and not, and all that a gate does.
func BenchmarkReject(b *testing.B) {
	f := benchFilters()
	made := make([][]byte, len(f.users))
	for i, u := range f.users {
		made[i] = []byte(plainKey(u))
	}
	b.Run("plain Test, key made before", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if !f.plain.Test(made[i&(1<<20-1)]) {
				b.Fatal("missing")
			}
		}
	})
	b.Run("plain Test, key made", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if !f.plain.TestString(plainKey(f.users[i&(1<<20-1)])) {
				b.Fatal("missing")
			}
		}
	})
	b.Run("overlay and filter", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			user := f.users[i&(1<<20-1)]
			if _, _, known := f.over.Consent(user); known {
				b.Fatal("known")
			}
			if a := f.live.Look(user, promotions); !a.OptedOut || !a.Current {
				b.Fatal("missing")
			}
		}
	})
}

// BenchmarkBuild compares the building of a filter with a loop that adds the
// same keys to a plain one of the library.
func BenchmarkBuild(b *testing.B) {
	n := benchKeys()
	b.Run("plain Add", func(b *testing.B) {
		report := timed(b)
		for b.Loop() {
			filter := plain.NewWithEstimates(uint(n), 5e-7)
			for i := range n {
				filter.AddString(plainKey(benchUser(i)))
			}
		}
		report(b, n)
	})
	for _, segments := range []int{1, 4} {
		b.Run(fmt.Sprintf("Build of %d segments", segments), func(b *testing.B) {
			p := plan()
			p.Memory, p.KeyMemory = 16<<30, 4<<30
			report := timed(b)
			for b.Loop() {
				var parts []iter.Seq2[bloom.Key, error]
				for i := range segments {
					parts = append(parts, numbered(i*n/segments, (i+1)*n/segments))
				}
				if _, err := bloom.Build(b.Context(), p, parts...); err != nil {
					b.Fatal(err)
				}
			}
			report(b, n)
		})
	}
}

// timed begins to measure what a key takes: by the clock, and of processors,
// which says more where a machine has other work.
func timed(b *testing.B) (report func(b *testing.B, keys int)) {
	b.Helper()
	used := func() (ns int64) {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func(b *testing.B, keys int) {
		b.Helper()
		all := float64(b.N) * float64(keys)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/all, "ns/key")
		b.ReportMetric(float64(used()-before)/all, "cpu-ns/key")
	}
}

// BenchmarkLoad checks and maps a snapshot.
func BenchmarkLoad(b *testing.B) {
	p := plan()
	p.Memory, p.KeyMemory = 16<<30, 4<<30
	built, err := bloom.Build(b.Context(), p, numbered(0, 1_000_000))
	if err != nil {
		b.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := built.WriteTo(&file); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	b.SetBytes(int64(file.Len()))
	for b.Loop() {
		if _, err := bloom.Load(dir, func(w io.Writer) error { _, err := w.Write(file.Bytes()); return err }); err != nil {
			b.Fatal(err)
		}
	}
}
