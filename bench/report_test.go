package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gonum.org/v1/plot/plotter"
)

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
	b.WriteString("\n## Processor time\n\nMicroseconds each, which other work on the machine changes little.\n\n")
	b.WriteString(table([]string{"what", "gate", "Redis", "bench", "held against", "its own"}, r.costs))
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
