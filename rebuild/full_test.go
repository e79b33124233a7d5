package rebuild_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/rebuild"
)

var (
	fullKeys        = flag.Float64("full.keys", 100_000, "opt-outs of TestFullSize, of four to a user")
	fullDir         = flag.String("full.dir", "", "its folder, for all its files; a temporary one if empty")
	fullMemory      = flag.Int64("full.memory", 16<<20, "what its filter may take, in bytes")
	fullBuildMemory = flag.Int64("full.build-memory", 256<<10, "what keys may take while it is built, in bytes")
	fullFor         = flag.Duration("full.for", 200*time.Millisecond, "how long checks are asked before the swap, and after it")
)

// TestFullSize goes the whole way of a filter with as many opt-outs as it is
// given: records are read and hashed, keys kept on disk, a filter built and
// published, fetched, checked, swapped for its predecessor while checks are
// asked, and served from. What it says of that is a table; what fails it is a
// check with another answer than "opted out", at any moment.
func TestFullSize(t *testing.T) {
	f := newFullSize(t)
	first := f.build("first build")
	f.load("first load", first)
	second := f.build("second build")
	calm := f.ask(*fullFor, func() {})
	swap := f.ask(*fullFor, func() { f.load("load and swap", second) })
	f.say("checks", "%v before the swap", calm)
	f.say("", "%v during it", swap)
	if calm.wrong+swap.wrong > 0 {
		t.Errorf("%d checks had another answer than opted out", calm.wrong+swap.wrong)
	}
	s := f.live.Snapshot()
	f.say("filter", "%s, %.2f bits a key, false positives %.3g of checks by its bits, %.3g measured", size(s.Size()),
		float64(s.Size()*8)/float64(s.Header().OptOuts.Keys), s.Header().FalsePositiveRate(), s.Measure(2_000_000, f.random))
	if err := f.table.Flush(); err != nil {
		t.Error(err)
	}
}

// build makes one filter through a Builder, and gives its memory back.
func (f *fullSize) build(name string) *bloom.Built {
	f.t.Helper()
	watched := watchMemory(f.t)
	begun := time.Now()
	built, err := f.builder.Once(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	took, stages := time.Since(begun), f.progress.took()
	anonymous, all := watched()
	debug.FreeOSMemory()
	h := built.Header()
	f.say(name, "%.1f s, %.0f ns a key, %.2g keys/s; read and build %.1f s, publish %.1f s", took.Seconds(), float64(took.Nanoseconds())/float64(h.OptOuts.Keys),
		float64(h.OptOuts.Keys)/took.Seconds(), stages[rebuild.StageBuild].Seconds(), stages[rebuild.StagePublish].Seconds())
	f.say("", "peak memory %s, with mapped files %s; disk %s of keys, %s of words", size(anonymous), size(all), size(built.Spilled()), size(8*(h.OptOuts.Words+h.OptIns.Words)))
	return built
}

// load waits until the keeper has fetched a filter and taken it into use, and
// its predecessor's memory has been given back.
func (f *fullSize) load(name string, built *bloom.Built) {
	f.t.Helper()
	begun := time.Now()
	f.keeper.Poke()
	for f.live.Snapshot() == nil || f.live.Snapshot().Header().Generation != built.Header().Generation || !f.live.Current() {
		time.Sleep(10 * time.Millisecond)
		if err := f.t.Context().Err(); err != nil {
			f.t.Fatal(err)
		}
	}
	took := time.Since(begun)
	_, two := memory(f.t)
	runtime.GC() // finds out that nobody refers to the predecessor
	time.Sleep(100 * time.Millisecond)
	runtime.GC()
	_, one := memory(f.t)
	f.say(name, "%.1f s, %.0f MB/s; memory with mapped files %s at the swap, %s after", took.Seconds(), float64(f.live.Snapshot().Size())/1e6/took.Seconds(), size(two), size(one))
}

// asked is what came of checks.
type asked struct {
	checks, wrong, slow int
	longest             time.Duration
}

func (a asked) String() string {
	return fmt.Sprintf("%d asked, %d wrong, %d slower than %v, the longest took %v", a.checks, a.wrong, a.slow, slow, a.longest)
}

const (
	slow   = 5 * time.Millisecond
	askers = 4
	// Checks come in lots, so that the machine is not all theirs.
	lot, rest = 10, time.Millisecond
)

// ask has checks asked while something is done, and for some time before and
// after.
func (f *fullSize) ask(around time.Duration, meanwhile func()) (all asked) {
	stop, results := make(chan struct{}), make(chan asked)
	for i := range askers {
		go func() { results <- f.asker(uint64(i), stop) }()
	}
	time.Sleep(around)
	meanwhile()
	time.Sleep(around)
	close(stop)
	for range askers {
		a := <-results
		all.checks, all.wrong, all.slow, all.longest = all.checks+a.checks, all.wrong+a.wrong, all.slow+a.slow, max(all.longest, a.longest)
	}
	return all
}

// asker asks about people who have opted out, until it is stopped.
func (f *fullSize) asker(seed uint64, stop <-chan struct{}) (a asked) {
	for {
		for range lot {
			seed = seed*6364136223846793005 + 1442695040888963407
			check := sendgate.Check{NotificationID: "n", User: fullUser(int(seed >> 16 % uint64(f.users))), Topic: "promotions", Channel: "push"}
			begun := time.Now()
			d, err := f.gate.Decide(f.t.Context(), check)
			took := time.Since(begun)
			a.checks++
			if err != nil || d.Verdict != sendgate.Suppress || !d.InProcess {
				a.wrong++
			}
			if took > slow {
				a.slow++
			}
			a.longest = max(a.longest, took)
		}
		select {
		case <-stop:
			return a
		case <-time.After(rest):
		}
	}
}

// fullBuilder builds of synthetic records.
func fullBuilder(p place, work string, users int, progress rebuild.Progress) *rebuild.Builder {
	return rebuild.New(rebuild.Options{
		Store: synthetic(users), Streams: &streams{owner: "mark"}, Archive: p, Namespace: "t",
		Catalog: func() (*sendgate.Catalog, error) { return catalogfile.Sample(), nil },
		Memory:  *fullMemory, KeyMemory: *fullBuildMemory, WorkDir: work,
		MaxFalsePositive: 0.001, AimFalsePositive: 1e-6, Segments: 16, Keep: 2, Progress: progress, Now: time.Now,
	})
}

func (f *fullSize) say(name, format string, args ...any) {
	fmt.Fprintf(f.table, name+"\t"+format+"\n", args...)
	_ = f.table.Flush() // a run may take long
}

func newTable(t *testing.T) *tabwriter.Writer {
	return tabwriter.NewWriter(t.Output(), 16, 0, 2, ' ', 0)
}

func folderIn(t *testing.T, name string) string {
	t.Helper()
	if *fullDir == "" {
		return t.TempDir()
	}
	return filepath.Join(*fullDir, name)
}
