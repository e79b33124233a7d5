// Package refill counts again in the caps what was lost with them: slots that a
// decision log tells of, as deliveries at the moments at which they were taken.
package refill

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
)

// Settler takes reports of deliveries. A delivery that it knows changes nothing.
type Settler interface {
	Settle(ctx context.Context, reports []sendgate.CapReport) []sendgate.CapReceipt
}

const (
	batch    = 64 // reports that are sent together
	parallel = 8  // batches under way
)

// Options say how it is done. All are required.
type Options struct {
	Caps     Settler
	Patience time.Duration // of a batch, while the caps do not answer
	Progress func(Totals)  // told after each batch, by one goroutine at a time
	Waiting  func(error)   // told why a batch is sent again; safe for concurrent use
}

// Totals are how many deliveries came to what.
type Totals struct {
	Sent     int
	Counted  int // that a cap lacked, or did not know to be delivered
	Known    int // to every cap that they count in
	TooOld   int // for every cap
	Overfull int // caps that had been full already
}

func (t *Totals) add(r sendgate.CapReceipt) {
	t.Sent++
	t.Overfull += r.Over
	switch r.Status {
	case sendgate.StatusSettled, sendgate.StatusGivenBack:
		t.Counted++
	case sendgate.StatusUnchanged:
		t.Known++
	default:
		t.TooOld++
	}
}

// Run sends deliveries, those of one batch in their order. What gets no answer
// is sent again, until that has taken longer than the patience. It ends with the
// first batch that fails, or with the context; what was sent stays counted, and
// a second run sends it again without harm.
func Run(ctx context.Context, o Options, deliveries []sendgate.CapReport) (totals Totals, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for some := range slices.Chunk(deliveries, batch) {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			receipts, err := o.send(ctx, some)
			mu.Lock()
			defer mu.Unlock()
			for _, r := range receipts {
				totals.add(r)
			}
			o.Progress(totals)
			return err
		})
	}
	err = group.Wait()
	if err == nil && ctx.Err() != nil && totals.Sent < len(deliveries) {
		err = context.Cause(ctx)
	}
	return totals, err
}

// send sends a batch until all of it was answered.
func (o *Options) send(ctx context.Context, reports []sendgate.CapReport) (done []sendgate.CapReceipt, err error) {
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		var left []sendgate.CapReport
		var why error
		for i, r := range o.Caps.Settle(ctx, reports) {
			if r.Err != nil {
				left, why = append(left, reports[i]), r.Err
			} else {
				done = append(done, r)
			}
		}
		reports = left
		return struct{}{}, why
	}, backoff.WithMaxElapsedTime(o.Patience), backoff.WithNotify(func(err error, _ time.Duration) { o.Waiting(err) }),
		backoff.WithBackOff(&backoff.ExponentialBackOff{
			InitialInterval: 50 * time.Millisecond, MaxInterval: 2 * time.Second, Multiplier: 2, RandomizationFactor: 0.5,
		}))
	if err != nil {
		return done, fmt.Errorf("%d of a batch of deliveries were not counted: %w", len(reports), err)
	}
	return done, nil
}
