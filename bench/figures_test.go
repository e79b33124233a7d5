package bench

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// latencies are how long many calls took, to a thousandth.
type latencies struct {
	mu sync.Mutex
	h  *hdr.Histogram // of microseconds
}

func newLatencies() *latencies {
	return &latencies{h: hdr.New(1, time.Minute.Microseconds(), 3)}
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	us := min(max(1, d.Microseconds()), time.Minute.Microseconds())
	_ = l.h.RecordValue(us) // it is within the bounds
}

// at is what a share of all calls, in per cent, did not exceed.
func (l *latencies) at(percent float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.h.ValueAtQuantile(percent)) * time.Microsecond
}

func (l *latencies) mean() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.h.Mean() * float64(time.Microsecond))
}

// median is the middle one of some figures, of an even number the upper; 0 if
// there are none.
func median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[len(sorted)/2]
}

// pairs are figures that were taken in turns, each with the one that it is held
// against.
type pairs struct{ ours, base []float64 }

func (p *pairs) add(ours, base float64) {
	p.ours, p.base = append(p.ours, ours), append(p.base, base)
}

// ratio is the median of the ratios of each turn: what else went on in a turn
// has slowed down both.
func (p *pairs) ratio() float64 { return median(p.ratios()) }

func (p *pairs) ratios() []float64 {
	var all []float64
	for i := range p.ours {
		all = append(all, p.ours[i]/p.base[i])
	}
	return all
}

// spread is the least and the greatest ratio.
func (p *pairs) spread() string {
	all := p.ratios()
	if len(all) < 2 {
		return ""
	}
	return fmt.Sprintf("%.2f–%.2f", slices.Min(all), slices.Max(all))
}

// aim is what a figure should be: at most or at least so much.
type aim struct {
	most, least float64
	isMost      bool
}

func atMost(x float64) aim  { return aim{most: x, isMost: true} }
func atLeast(x float64) aim { return aim{least: x} }

func (a aim) String() string {
	if a.isMost {
		return fmt.Sprintf("≤ %g", a.most)
	}
	return fmt.Sprintf("≥ %g", a.least)
}

func (a aim) met(figure float64) bool {
	if a.isMost {
		return figure <= a.most
	}
	return figure >= a.least
}

// row is one line of the table.
type row struct {
	what, base string // what is held against what
	ratio      float64
	spread     string // of the ratios of all turns
	aim        aim
	absolute   string // figures behind the ratio
	short      string // why the figure does not tell whether the aim is met; empty if it does
	failed     error  // why there is no figure
}

func (r row) cells() []string {
	if r.failed != nil {
		return []string{r.what, r.base, "–", "", r.aim.String(), "not measured: " + r.failed.Error(), ""}
	}
	met := "met"
	if !r.aim.met(r.ratio) {
		met = "**missed**"
	}
	if r.short != "" {
		met += ", but " + r.short
	}
	return []string{r.what, r.base, number(r.ratio), r.spread, r.aim.String(), met, r.absolute}
}

// number writes a figure with three digits that count.
func number(x float64) string {
	switch {
	case x == float64(int64(x)):
		return fmt.Sprintf("%.0f", x)
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// thousands writes a rate with a separator.
func thousands(x float64) string {
	text := fmt.Sprintf("%.0f", x)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// table writes rows as Markdown.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, r := range rows {
		for i, cell := range r {
			r[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		line(r)
	}
	return b.String()
}

// micros writes a duration for people.
func micros(d time.Duration) string {
	if d < 10*time.Millisecond {
		return thousands(float64(d.Microseconds())) + " µs"
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
