package bench

import "fmt"

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
	var asked, askedBare int
	var used processor
	bareBefore, err := bare.processor(r.t.Context())
	r.must(err)
	for range r.form.turns {
		ours := r.closed(w.singles(100), callers, &used)
		base := r.wants(closed(asks{url: bare.url + "/v1/check", body: w.people.crowd(100).check, checks: 1}, callers, r.form.turn))
		rejects.add(ours.perSecond(), base.perSecond())
		asked, askedBare = asked+ours.checks, askedBare+base.checks
	}
	bareAfter, err := bare.processor(r.t.Context())
	r.must(err)
	r.saturation[100] = median(rejects.ours)
	r.add(row{
		what: "fast reject over HTTP, a second", base: "a bare Echo handler with the same body", ratio: rejects.ratio(), spread: rejects.spread(), aim: atLeast(0.85),
		absolute: thousands(median(rejects.ours)) + " : " + thousands(median(rejects.base)),
	})
	r.cost("fast reject over HTTP", used, asked, "the bare handler", bareAfter-bareBefore, askedBare)
	r.fullChecks()
}

// fullChecks are single checks that go all the way, and what is under them.
func (r *run) fullChecks() {
	w := r.world
	floor, err := r.engines.newFloor()
	r.must(err)
	var checks pairs
	guess, admitted, asked := 20_000.0, 0, 0
	var used processor
	for range r.form.turns {
		ours := r.closed(w.singles(0), callers, &used)
		base, err := floor.perSecond(r.t.Context(), callers, 1, r.form.turn, guess)
		r.must(err)
		checks.add(ours.perSecond(), base)
		guess, admitted, asked = base, admitted+ours.admitted, asked+ours.checks
	}
	r.saturation[0] = median(checks.ours)
	r.add(row{
		what: fmt.Sprintf("single full check (record, quiet hours, three caps), %d callers, HTTP and JSON included, a second", callers),
		base: fmt.Sprintf("`EVALSHA` of a minimal one-cap script, redis-benchmark with %d clients", callers), ratio: checks.ratio(), spread: checks.spread(), aim: atLeast(0.5),
		absolute: thousands(median(checks.ours)) + " : " + thousands(median(checks.base)),
	})
	called, err := redisProcessor(r.t.Context(), floor.client)
	r.must(err)
	r.cost("single full check", used, asked, "the minimal script, in Redis", called, floor.calls)
	r.note("Of the single full checks by callers who wait, %.0f %% were allowed, and the others stopped by a cap.", 100*float64(admitted)/float64(asked))
	for _, out := range shares {
		if r.saturation[out] == 0 {
			r.saturation[out] = r.usual(w.singles(out), callers)
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
	var used processor
	calledBefore, err := redisProcessor(r.t.Context(), f.client)
	r.must(err)
	f.calls = 0
	for range r.form.turns {
		ours := r.closed(w.batches(0), batchCallers, &used)
		base, err := f.perSecond(r.t.Context(), batchCallers, batchSize, r.form.turn, guess)
		r.must(err)
		batch.add(ours.perSecond(), base)
		guess, asked = base, asked+ours.checks
	}
	r.add(row{
		what: "batch of 100, full path, checks a second", base: fmt.Sprintf("the same script in pipelines of 100, %d clients", batchCallers), ratio: batch.ratio(), spread: batch.spread(), aim: atLeast(0.7),
		absolute: thousands(median(batch.ours)) + " : " + thousands(median(batch.base)),
	})
	called, err := redisProcessor(r.t.Context(), f.client)
	r.must(err)
	r.cost("full check in a batch of 100", used, asked, "the script in a pipeline, in Redis", called-calledBefore, f.calls)
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
			r.batched[out] = r.usual(r.world.batches(out), batchCallers)
		}
	}
}

// usual is the median rate of some turns.
func (r *run) usual(a asks, callers int) float64 {
	r.t.Helper()
	var rates []float64
	for range r.form.turns {
		rates = append(rates, r.wants(closed(a, callers, r.form.turn)).perSecond())
	}
	return median(rates)
}
