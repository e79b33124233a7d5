package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/sendgate/sendgate/bloom/archive"
)

// held is an archive that publishes when it is let, so that a filter is built
// before the load begins and swapped in while it goes on.
type held struct {
	*archive.Archive
	built, release chan struct{}
}

func (h held) Publish(ctx context.Context, generation int64, write func(io.Writer) error) error {
	close(h.built)
	<-h.release
	return h.Archive.Publish(ctx, generation, write)
}

// swapWindow is for how long a swap is looked at, from when the filter is about
// to be published, and before it for how long the same load without one.
const swapWindow = 2 * time.Second

// swapped asks at a rate, has the gate swap a filter in meanwhile, and counts the
// checks that failed or were slow before the swap and with it.
func (w *world) swapped(a asks, rate float64) (o *outcome, before, with int, err error) {
	h := held{w.archive, make(chan struct{}), make(chan struct{})}
	type ended struct {
		generation int64
		err        error
	}
	end := make(chan ended, 1)
	go func() {
		generation, err := w.build(h)
		end <- ended{generation, err}
	}()
	select {
	case <-h.built:
	case e := <-end:
		return nil, 0, 0, e.err
	}
	const from = time.Second + swapWindow
	release := time.AfterFunc(from, func() { close(h.release) })
	defer release.Stop()
	o = open(a, rate, from+swapWindow)
	e := <-end
	if e.err != nil {
		return nil, 0, 0, e.err
	}
	m, err := w.metrics()
	switch {
	case err != nil:
		return nil, 0, 0, err
	case m.value("sendgate_filter_generation") != float64(e.generation):
		return nil, 0, 0, fmt.Errorf("the gate did not use the new filter within %s", swapWindow)
	}
	for _, at := range o.harmed {
		switch {
		case at >= from:
			with++
		case at >= from-swapWindow:
			before++
		}
	}
	return o, before, with, nil
}

// swap counts what a swap of the filter does to checks under way.
func (r *run) swap() {
	const out = 70
	rate := r.saturation[out] / 2
	var before, with, checks int
	for range r.form.turns {
		o, b, w, err := r.many.swapped(r.many.singles(out), rate)
		r.must(err)
		before, with, checks = before+b, with+w, checks+o.checks
	}
	r.add(row{
		what: fmt.Sprintf("checks failed or slower than %s within %s of a swap, %d swaps", slow, swapWindow, r.form.turns), base: "less those in as long before it", ratio: float64(max(0, with-before)), aim: atMost(0),
		absolute: fmt.Sprintf("%s − %s of %s each, %s users, half of saturation, %d %% opted out", thousands(float64(with)), thousands(float64(before)),
			thousands(rate*swapWindow.Seconds()*float64(r.form.turns)), thousands(float64(r.form.many)), out),
	})
	if checks == 0 {
		r.t.Fatal("no check was answered while filters were swapped")
	}
}
