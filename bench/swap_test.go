package bench

import (
	"context"
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

// swapped asks at a rate, and has the gate swap a filter in halfway.
func (w *world) swapped(a asks, rate float64, lasting time.Duration) (*outcome, error) {
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
		return nil, e.err
	}
	halfway := time.AfterFunc(lasting/2, func() { close(h.release) })
	defer halfway.Stop()
	o := open(a, rate, lasting)
	e := <-end
	if e.err != nil {
		return nil, e.err
	}
	w.uses(e.generation)
	return o, nil
}

// harmed is how many checks failed or took too long.
func (o *outcome) harmed() float64 { return float64(o.failed + o.slow) }
