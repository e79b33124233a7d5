package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"
)

var load = flag.String("load", "", "put load on a gate, in a `form`: short or full")

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

var forms = map[string]form{
	"short": {
		name: "short", folder: "docs/performance", turns: 3, turn: 3 * time.Second, each: 4 * time.Second,
		keys: 5_000_000, few: 10_000, many: 1_000_000,
	},
	"full": {
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

// TestLoad is the bench. It fails if something does not work, and never because
// of a figure.
func TestLoad(t *testing.T) {
	if *load == "" {
		t.Skip("no load is put on: make bench does that")
	}
	f, ok := forms[*load]
	if !ok {
		t.Fatalf("-load is short or full, not %q", *load)
	}
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
	world   *world

	rows       []row
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
	bare     *latencies // round trips beside it; nil where there were none
}

func (r *run) say(format string, args ...any) {
	r.t.Logf("%5.0fs  %s", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

func (r *run) add(w row) {
	r.rows = append(r.rows, w)
	r.say("%s", strings.Join(w.cells(), " | "))
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

// inProcess is what needs no server.
func (r *run) inProcess() {
	rejects := row{what: fmt.Sprintf("fast reject in process, %s opt-outs", thousands(float64(r.form.keys))), base: "a plain bits-and-blooms `Test`", aim: atMost(0.8)}
	allocations := row{what: "allocations of the look-up behind a fast reject", aim: atMost(0)}
	found, err := reject(r.t.Context(), r.form.keys)
	if err != nil {
		rejects.failed, allocations.failed = err, err
	} else {
		rejects.ratio, rejects.absolute = found.ours/found.plain, fmt.Sprintf("%.0f : %.0f ns", found.ours, found.plain)
		allocations.ratio = found.allocations
	}
	if !r.form.fullSize {
		rejects.short = "at 100 million by `make bench-full`"
	}
	r.add(rejects)
	r.add(allocations)
	decided := row{what: "allocations of a fast reject by the gate, validation and decision included", aim: atMost(0)}
	decided.ratio, decided.failed = rejectAllocations()
	r.add(decided)
}

// singles are single checks by callers who wait.
func (r *run) singles() {
	w := r.world
	status, answer, err := w.once(w.singles(100))
	r.must(err)
	bare := startBare(r.t, answer)
	r.say("an opt-out is answered %d with %s", status, answer)
	_, full, err := w.once(w.singles(0))
	r.must(err)
	r.say("a full check is answered with %s", full)

	var rejects pairs
	for range r.form.turns {
		ours := r.wants(closed(w.singles(100), callers, r.form.turn))
		base := r.wants(closed(asks{url: bare + "/v1/check", body: w.people.crowd(100).check, checks: 1}, callers, r.form.turn))
		rejects.add(ours.perSecond(), base.perSecond())
	}
	r.saturation[100] = median(rejects.ours)
	r.add(row{
		what: "fast reject over HTTP, a second", base: "a bare Echo handler with the same body", ratio: rejects.ratio(), spread: rejects.spread(), aim: atLeast(0.85),
		absolute: thousands(median(rejects.ours)) + " : " + thousands(median(rejects.base)),
	})

	floor, err := r.engines.newFloor()
	r.must(err)
	var checks pairs
	guess, admitted, asked := 20_000.0, 0, 0
	before, err := w.processor()
	r.must(err)
	for range r.form.turns {
		ours := r.wants(closed(w.singles(0), callers, r.form.turn))
		base, err := floor.perSecond(r.t.Context(), callers, 1, r.form.turn, guess)
		r.must(err)
		checks.add(ours.perSecond(), base)
		guess, admitted, asked = base, admitted+ours.admitted, asked+ours.checks
	}
	after, err := w.processor()
	r.must(err)
	r.saturation[0] = median(checks.ours)
	r.add(row{
		what: fmt.Sprintf("single full check (record, quiet hours, three caps), %d callers, HTTP and JSON included, a second", callers),
		base: fmt.Sprintf("`EVALSHA` of a minimal one-cap script, redis-benchmark with %d clients", callers), ratio: checks.ratio(), spread: checks.spread(), aim: atLeast(0.5),
		absolute: thousands(median(checks.ours)) + " : " + thousands(median(checks.base)),
	})
	r.note("Single full checks: %.0f %% were allowed; %s.", 100*float64(admitted)/float64(asked), after.per(before, asked))
	for _, out := range shares {
		if r.saturation[out] == 0 {
			r.saturation[out] = r.wants(closed(w.singles(out), callers, r.form.turn)).perSecond()
		}
	}
	r.batched = map[int]float64{}
	r.floor(floor)
}

// floor compares batches with the script in a pipeline.
func (r *run) floor(f *floor) {
	w := r.world
	var batch pairs
	guess, asked := 60_000.0, 0
	before, err := w.processor()
	r.must(err)
	for range r.form.turns {
		ours := r.wants(closed(w.batches(0), batchCallers, r.form.turn))
		base, err := f.perSecond(r.t.Context(), batchCallers, batchSize, r.form.turn, guess)
		r.must(err)
		batch.add(ours.perSecond(), base)
		guess, asked = base, asked+ours.checks
	}
	after, err := w.processor()
	r.must(err)
	r.add(row{
		what: "batch of 100, full path, checks a second", base: fmt.Sprintf("the same script in pipelines of 100, %d clients", batchCallers), ratio: batch.ratio(), spread: batch.spread(), aim: atLeast(0.7),
		absolute: thousands(median(batch.ours)) + " : " + thousands(median(batch.base)),
	})
	r.note("Batches, full path: %s.", after.per(before, asked))
}

// batches compares batches with each other.
func (r *run) batches() {
	var mixed pairs
	for range r.form.turns {
		ours := r.wants(closed(r.world.batches(70), batchCallers, r.form.turn))
		base := r.wants(closed(r.world.batches(0), batchCallers, r.form.turn))
		mixed.add(ours.perSecond(), base.perSecond())
	}
	r.batched[0], r.batched[70] = median(mixed.base), median(mixed.ours)
	r.add(row{
		what: "batch of 100, 70 % opted out, checks a second", base: "batch of 100, full path", ratio: mixed.ratio(), spread: mixed.spread(), aim: atLeast(2.5),
		absolute: thousands(median(mixed.ours)) + " : " + thousands(median(mixed.base)),
	})
	for _, out := range shares {
		if r.batched[out] == 0 {
			r.batched[out] = r.wants(closed(r.world.batches(out), batchCallers, r.form.turn)).perSecond()
		}
	}
}

// atRates asks at fractions of what the gate can do.
func (r *run) atRates() {
	w := r.world
	for _, out := range shares {
		for _, fraction := range fractions {
			p := point{out: out, fraction: fraction, rate: fraction * r.saturation[out]}
			before, err := w.metrics()
			r.must(err)
			stop := w.probe(probeRate)
			p.outcome = open(w.singles(out), p.rate, r.form.each)
			p.bare, err = stop()
			r.must(err)
			after, err := w.metrics()
			r.must(err)
			r.points = append(r.points, p)
			o := p.outcome
			r.say("%d %% opted out, %s a second: p50 %s, p99 %s, sent late by p99 %s; bare p50 %s, p99 %s; %d failed", out, thousands(p.rate), micros(o.took.at(50)), micros(o.took.at(99)), micros(o.late.at(99)), micros(p.bare.at(50)), micros(p.bare.at(99)), o.failed)
			if out == 0 && fraction == 0.5 {
				r.half(p, before, after)
			}
		}
	}
}

// half is what is told of single full checks at half of saturation.
func (r *run) half(p point, before, after figures) {
	took, bare := p.outcome.took.at(99), p.bare.at(99)
	r.add(row{
		what: "p99 of a single full check at half of saturation", base: "p99 of one bare Redis round trip under the same load", ratio: float64(took) / float64(bare), aim: atMost(3),
		absolute: fmt.Sprintf("%s : %s at %s checks a second; under 1 ms on a quiet machine: %s", micros(took), micros(bare), thousands(p.rate), yes(took < time.Millisecond)),
	})
	mean := func(name string) float64 { // microseconds a check
		return 1e6 * (after.value(name) - before.value(name)) / float64(max(1, p.outcome.checks))
	}
	var all float64
	for _, step := range []string{"global", "filter", "preference", "quiet_hours", "caps"} {
		took := mean("sendgate_step_seconds_sum{" + step + "}")
		r.steps = append(r.steps, bar{strings.ReplaceAll(step, "_", " "), took})
		all += took
	}
	handled := mean("sendgate_http_request_seconds_sum{POST}")
	r.steps = append(r.steps, bar{"JSON and the rest of the handler", handled - all}, bar{"HTTP, the network and waiting", float64(p.outcome.took.mean().Nanoseconds())/1000 - handled})
}

func yes(holds bool) string {
	if holds {
		return "yes"
	}
	return "no"
}

// swap counts what a swap of the filter does to checks under way.
func (r *run) swap() {
	const out = 70
	w, rate := r.world, r.saturation[out]/2
	var with, without float64
	checks := 0
	for range r.form.turns {
		base := open(w.singles(out), rate, 2*r.form.turn)
		ours, err := w.swapped(w.singles(out), rate, 2*r.form.turn)
		r.must(err)
		with, without, checks = with+ours.harmed(), without+base.harmed(), checks+ours.checks
	}
	r.add(row{
		what: fmt.Sprintf("checks failed or slower than %s in %d runs with a swap", slow, r.form.turns), base: "less those in as many runs without", ratio: max(0, with-without), aim: atMost(0),
		absolute: fmt.Sprintf("%.0f and %.0f of %s each, at half of saturation, %d %% opted out", with, without, thousands(float64(checks)), out),
	})
}

// population compares few users with many, each with a gate and a Redis of
// their own.
func (r *run) population() {
	many, rate := r.engines.newWorld(r.form.many), r.saturation[0]/2
	var p50, p99 pairs
	for range r.form.turns {
		ours, base := open(many.singles(0), rate, r.form.turn), open(r.world.singles(0), rate, r.form.turn)
		p50.add(float64(ours.took.at(50)), float64(base.took.at(50)))
		p99.add(float64(ours.took.at(99)), float64(base.took.at(99)))
	}
	for _, q := range []struct {
		name string
		p    pairs
	}{{"p50", p50}, {"p99", p99}} {
		w := row{
			what: fmt.Sprintf("%s of a single full check with %s users", q.name, thousands(float64(r.form.many))), base: fmt.Sprintf("with %s", thousands(float64(r.form.few))),
			ratio: q.p.ratio(), spread: q.p.spread(), aim: atMost(1.3),
			absolute: micros(time.Duration(median(q.p.ours))) + " : " + micros(time.Duration(median(q.p.base))),
		}
		if !r.form.fullSize {
			w.short = "with 10 million by `make bench-full`"
		}
		r.add(w)
	}
	if n, bytes, err := many.stored(); err == nil {
		r.note("Redis with %s users has %s keys in %.1f GB.", thousands(float64(r.form.many)), thousands(float64(n)), float64(bytes)/1e9)
	}
}

// write writes the table and the plots.
func (r *run) write() {
	rows := make([][]string, len(r.rows))
	for i := range r.rows {
		rows[i] = r.rows[i].cells()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What `make bench%s` has found\n\n%s.\n\n", map[bool]string{true: "-full"}[r.form.fullSize], r.machine)
	b.WriteString("Ratios are of figures taken in turns, the median of all turns, with the least and the\ngreatest beside it; see [performance.md](" + strings.Repeat("../", strings.Count(r.form.folder, "/")) + "performance.md). Absolute figures are for\ninformation.\n\n")
	b.WriteString(table([]string{"what", "held against", "ratio", "of all turns", "aim", "", "absolute"}, rows))
	b.WriteString("\n")
	for _, n := range r.notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	b.WriteString("\n## At fixed rates\n\nLatency of single checks from when they were due. *Late* is the p99 of how late the\ngenerator sent them, which is in the latency.\n\n")
	b.WriteString(table([]string{"opted out", "of saturation", "checks a second", "p50", "p90", "p99", "p99.9", "late", "bare Redis p50", "p99", "failed"}, r.rates()))
	b.WriteString("\n")
	for _, name := range append([]string{"throughput", "steps"}, latencyPlots()...) {
		fmt.Fprintf(&b, "![%s](%s.svg)\n", name, name)
	}
	r.t.Logf("\n%s", b.String())
	r.must(os.WriteFile(filepath.Join(r.form.folder, "table.md"), []byte(b.String()), 0o644))
	r.must(r.draw())
}

func latencyPlots() (names []string) {
	for _, out := range shares {
		names = append(names, fmt.Sprintf("latency-%d", out))
	}
	return names
}

// rates are the points of the open loop as lines of a table.
func (r *run) rates() (rows [][]string) {
	for _, p := range r.points {
		cells := []string{fmt.Sprintf("%d %%", p.out), fmt.Sprintf("%.0f %%", 100*p.fraction), thousands(p.rate)}
		for _, q := range quantiles {
			cells = append(cells, micros(p.outcome.took.at(q)))
		}
		rows = append(rows, append(cells, micros(p.outcome.late.at(99)), micros(p.bare.at(50)), micros(p.bare.at(99)), fmt.Sprint(p.outcome.failed)))
	}
	return rows
}

// draw draws the plots.
func (r *run) draw() error {
	path := func(name string) string { return filepath.Join(r.form.folder, name+".svg") }
	for i, out := range shares {
		var lines []series
		for _, q := range quantiles {
			lines = append(lines, series{name: fmt.Sprintf("p%g", q), points: r.line(out, func(p point) time.Duration { return p.outcome.took.at(q) })})
		}
		lines = append(lines, series{name: "bare Redis, p99", dashed: true, points: r.line(out, func(p point) time.Duration { return p.bare.at(99) })})
		title := fmt.Sprintf("Latency of single checks, %d %% opted out", out)
		if err := drawLines(path(latencyPlots()[i]), title, "checks a second", "milliseconds", true, lines); err != nil {
			return err
		}
	}
	byShare := func(figures map[int]float64) (points plotter.XYs) {
		for _, out := range shares {
			points = append(points, plotter.XY{X: float64(out), Y: figures[out] / 1000})
		}
		return points
	}
	err := drawLines(path("throughput"), "Throughput, by the share of checks that is opted out", "per cent opted out", "thousand checks a second", false, []series{
		{name: "batches of 100", points: byShare(r.batched)}, {name: "single checks", points: byShare(r.saturation)},
	})
	if err != nil {
		return err
	}
	return drawBars(path("steps"), "Where a single full check spends its time, at half of saturation", "microseconds, mean", r.steps)
}

// line is one figure of all rates, in milliseconds.
func (r *run) line(out int, figure func(point) time.Duration) (points plotter.XYs) {
	for _, p := range r.points {
		if p.out == out {
			points = append(points, plotter.XY{X: p.rate, Y: float64(figure(p).Microseconds()) / 1000})
		}
	}
	return points
}
