package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// form is how long and how large a run is.
type form struct {
	name   string
	folder string // of what it writes, in the repository

	turns    int           // of every comparison
	turn     time.Duration // of each side of a turn
	each     time.Duration // at each rate of the open loop
	keys     int           // in the filter that is looked up in process
	few      int           // users
	many     int           // that few are compared with
	fullSize bool          // keys and many are those of the aims
}

var forms = []form{
	{
		name: "short", folder: "docs/performance", turns: 3, turn: 3 * time.Second, each: 4 * time.Second,
		keys: 5_000_000, few: 10_000, many: 1_000_000,
	},
	{
		name: "full", folder: "docs/performance/full", turns: 7, turn: 10 * time.Second, each: 30 * time.Second,
		keys: 100_000_000, few: 10_000, many: 10_000_000, fullSize: true,
	},
}

const (
	callers      = 64 // of single checks, who each wait for their answer
	batchCallers = 8
	probeRate    = 500 // bare round trips a second beside the load
)

var (
	shares    = []int{0, 30, 70, 100} // opted out, of a hundred
	fractions = []float64{0.25, 0.5, 0.75, 0.9}
	quantiles = []float64{50, 90, 99, 99.9}
)

// BenchmarkLoad is the bench, once in each form that is asked for. It fails if
// something does not work, and never because of a figure.
func BenchmarkLoad(b *testing.B) {
	for _, f := range forms {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() { // once: it takes longer than any benchmark has to
				putOn(b, f)
			}
		})
	}
}

// putOn puts load on gates.
func putOn(t testing.TB, f form) {
	t.Chdir("..") // the programs and engines are found from there
	// What waits for the next call to be due holds one of them.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	r := &run{t: t, form: f, machine: machine(t.Context()), began: time.Now(), saturation: map[int]float64{}}
	if err := os.MkdirAll(f.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	r.inProcess()
	r.engines = startEngines(t)
	r.world = r.engines.newWorld(f.few)
	r.singles()
	r.batches()
	r.atRates()
	r.many = r.engines.newWorld(f.many)
	r.swap()
	r.population()
	r.write()
}

// run is one run of the bench, and what it has found so far.
type run struct {
	t       testing.TB
	form    form
	machine string
	began   time.Time
	engines *engines
	world   *world // of few users
	many    *world // of many

	rows       []row
	costs      [][]string // lines of the table of processor time
	notes      []string
	saturation map[int]float64 // checks a second, by the share that is opted out
	batched    map[int]float64 // the same, in batches
	points     []point
	steps      []bar
}

// point is what the open loop found at one rate.
type point struct {
	out      int
	fraction float64 // of saturation
	rate     float64
	outcome  *outcome
	bare     *latencies // round trips beside it
}

func (r *run) say(format string, args ...any) {
	r.t.Logf("%5.0fs  %s", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

func (r *run) add(w row) {
	r.rows = append(r.rows, w)
	r.say("%s", strings.Join(w.cells(), " | "))
}

// cost keeps what so many checks have used of the processor, and calls of what
// they are held against.
func (r *run) cost(what string, used processor, checks int, base string, baseUsed time.Duration, calls int) {
	cells := []string{what, each(used.gate, checks), each(used.redis, checks), each(used.bench, checks), base, each(baseUsed, calls)}
	r.costs = append(r.costs, cells)
	r.say("processor time: %s", strings.Join(cells, " | "))
}

// note keeps what is worth knowing beside the table.
func (r *run) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
	r.say("%s", r.notes[len(r.notes)-1])
}

// must ends the run: something does not work.
func (r *run) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// closed asks the first world as closed does, and adds what of the processor that
// took.
func (r *run) closed(a asks, callers int, used *processor) *outcome {
	r.t.Helper()
	before, err := r.world.processor()
	r.must(err)
	o := r.wants(closed(a, callers, r.form.turn))
	after, err := r.world.processor()
	r.must(err)
	*used = used.plus(before, after)
	return o
}

// wants ends the run if checks failed that were asked by callers who wait.
func (r *run) wants(o *outcome) *outcome {
	r.t.Helper()
	if o.checks == 0 {
		r.t.Fatalf("no check was answered; %d failed: %s", o.failed, o.why)
	}
	if o.failed > 0 {
		r.note("%d checks failed: %s", o.failed, o.why)
	}
	return o
}
