package bench

import (
	"fmt"
	"strings"
	"time"
)

// atRates asks at fractions of what the gate can do.
func (r *run) atRates() {
	w := r.world
	for _, out := range shares {
		for _, fraction := range fractions {
			p := r.point(out, fraction)
			r.points = append(r.points, p)
			o := p.outcome
			if o.failed > 0 {
				r.note("At %.0f %% of saturation with %d %% opted out, %s checks failed or were decided without the record or the caps; the first: %s", 100*fraction, out, thousands(float64(o.failed)), o.why)
			}
			r.say("%d %% opted out, %s a second: p50 %s, p99 %s, sent late by p99 %s; bare p50 %s, p99 %s; %d failed", out, thousands(p.rate), micros(o.took.at(50)), micros(o.took.at(99)), micros(o.late.at(99)), micros(p.bare.at(50)), micros(p.bare.at(99)), o.failed)
		}
	}
	var tail pairs
	var before, after figures
	var p point
	for range r.form.turns {
		var err error
		before, err = w.metrics()
		r.must(err)
		p = r.point(0, 0.5)
		after, err = w.metrics()
		r.must(err)
		tail.add(float64(p.outcome.took.at(99)), float64(p.bare.at(99)))
	}
	took, bare := time.Duration(median(tail.ours)), time.Duration(median(tail.base))
	r.add(row{
		what: "p99 of a single full check at half of saturation", base: "p99 of one bare Redis round trip under the same load", ratio: tail.ratio(), spread: tail.spread(), aim: atMost(3),
		absolute: fmt.Sprintf("%s : %s at %s checks a second; under 1 ms: %s", micros(took), micros(bare), thousands(p.rate), yes(took < time.Millisecond)),
	})
	r.breakDown(p, before, after)
}

// point asks at a fraction of what the gate can do, with bare round trips beside
// it.
func (r *run) point(out int, fraction float64) point {
	p := point{out: out, fraction: fraction, rate: fraction * r.saturation[out]}
	r.world.calm()
	stop := r.world.probe(probeRate)
	p.outcome = open(r.world.singles(out), p.rate, r.form.each)
	var err error
	p.bare, err = stop()
	r.must(err)
	return p
}

// breakDown says where checks have spent their time.
func (r *run) breakDown(p point, before, after figures) {
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
	r.steps = append(r.steps, bar{"the rest of the handler", handled - all}, bar{"HTTP, the network and waiting", float64(p.outcome.took.mean().Nanoseconds())/1000 - handled})
}

func yes(holds bool) string {
	if holds {
		return "yes"
	}
	return "no"
}

// population compares few users with many, each with a gate and a Redis of
// their own.
func (r *run) population() {
	rate := r.saturation[0] / 2
	var p50, p99 pairs
	for range r.form.turns {
		ours, base := open(r.many.singles(0), rate, r.form.turn), open(r.world.singles(0), rate, r.form.turn)
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
	if n, bytes, err := r.many.stored(); err == nil {
		r.note("Redis with %s users has %s keys in %.1f GB.", thousands(float64(r.form.many)), thousands(float64(n)), float64(bytes)/1e9)
	}
}
