package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/sendgate/sendgate/decisionlog/refill"
	"github.com/sendgate/sendgate/decisionlog/replay"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/cli"
)

// sayEvery is how often progress is printed.
const sayEvery = 2 * time.Second

type rebuildCapsCmd struct {
	reading
	counting
	Patience time.Duration `default:"10m" help:"How long to try again while the caps' Redis does not answer."`
}

func (c rebuildCapsCmd) Run(ctx context.Context, s cli.Streams) (err error) {
	caps, err := c.caps(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, caps.Close()) }()
	r, err := c.replay(ctx, s.Out, replay.Options{})
	if err != nil {
		return err
	}
	waiting := said{every: sayEvery}
	wait := func(err error) {
		waiting.say(func() { fmt.Fprintf(s.Err, "the caps did not answer, and are asked again: %v\n", err) })
	}
	now, err := clockOf(ctx, caps.Limiter, c.Patience, wait)
	if err != nil {
		return fmt.Errorf("%s: %w", caps.where, err)
	}
	live, err := r.Live(now)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%d deliveries still count at %s\n", len(live), instant(now))
	if len(live) == 0 {
		fmt.Fprintln(s.Out, "nothing is to be counted: no slot that the logs tell of is within its window and was kept")
		return nil
	}
	fmt.Fprintf(s.Out, "they are counted in %s at %s\n", caps.keys, caps.where)
	progress := said{every: sayEvery, last: time.Now()}
	totals, err := refill.Run(ctx, refill.Options{
		Caps: caps.Limiter, Patience: c.Patience, Waiting: wait,
		Progress: func(t refill.Totals) {
			progress.say(func() { fmt.Fprintf(s.Out, "%d of %d sent\n", t.Sent, len(live)) })
		},
	}, live)
	fmt.Fprintf(s.Out, "%d sent: %d counted, %d known already, %d too old; %d times a cap was full already\n",
		totals.Sent, totals.Counted, totals.Known, totals.TooOld, totals.Overfull)
	return err
}

// clockOf reads the clock of the caps, as soon as they answer.
func clockOf(ctx context.Context, caps *freqcap.Limiter, patience time.Duration, waiting func(error)) (time.Time, error) {
	u, err := backoff.Retry(ctx, func() (freqcap.Usage, error) { return caps.Usage(ctx, "", "clock") },
		backoff.WithMaxElapsedTime(patience), backoff.WithNotify(func(err error, _ time.Duration) { waiting(err) }),
		backoff.WithBackOff(&backoff.ExponentialBackOff{InitialInterval: 50 * time.Millisecond, MaxInterval: 2 * time.Second, Multiplier: 2, RandomizationFactor: 0.5}))
	return u.At, err
}

// said lets something be said every so often.
type said struct {
	every time.Duration
	mu    sync.Mutex
	last  time.Time
}

func (s *said) say(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.last) >= s.every {
		s.last = now
		what()
	}
}
