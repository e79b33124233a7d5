package prefs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/sendgate/sendgate"
)

const (
	sweepEvery = 2 * time.Second
	sweepLimit = 2 * time.Second // of carrying one record on

	// graceFor is how long a change is left to the request that made it.
	graceFor = time.Second
	// pendingFor is how long a change stays pending at the least. If Redis
	// loses its last seconds in a failover, the change is still here to be
	// announced again.
	pendingFor = 30 * time.Second
)

// Sweeper carries on the changes that were cut off on their way: by a crash, a
// Redis that was away, a limit that ran out. Any number of gates may sweep the
// same store.
type Sweeper struct {
	store   Store
	carrier *Carrier
	cache   Cache
	log     *slog.Logger
	now     func() time.Time
	observe func(oldest time.Duration)
}

// SweeperOptions are what a Sweeper is made of. All are required.
type SweeperOptions struct {
	Store   Store
	Carrier *Carrier
	Cache   Cache
	Log     *slog.Logger
	Now     func() time.Time
	Observe func(oldest time.Duration) // told how long the oldest pending change has been so; 0 if there is none
}

// NewSweeper makes a Sweeper. Run starts it.
func NewSweeper(o SweeperOptions) *Sweeper {
	return &Sweeper{store: o.Store, carrier: o.Carrier, cache: o.Cache, log: o.Log, now: o.Now, observe: o.Observe}
}

// Run sweeps every two seconds until the context ends.
func (s *Sweeper) Run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("the sweep of pending changes did not finish", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Sweep looks at every record with pending changes once. It carries on what
// was cut off, and clears what has got through for good. One record that
// cannot be carried on does not keep others from it; the error is the last.
func (s *Sweeper) Sweep(ctx context.Context) error {
	var oldest time.Duration
	var last error
	for shard := range PendingShards {
		err := s.store.Pending(ctx, shard, func(e PendingEntry) error {
			age := s.now().Sub(e.Since)
			oldest = max(oldest, age)
			if age < graceFor {
				return nil
			}
			one, cancel := context.WithTimeout(ctx, sweepLimit)
			defer cancel()
			if err := s.sweepOne(one, e.User); err != nil && !errors.Is(err, ErrConflict) {
				last = err
			}
			return ctx.Err()
		})
		if err != nil {
			last = err
		}
	}
	s.observe(oldest)
	return last
}

// sweepOne carries a record on unless it has got through, and clears those of
// its changes that are pending for long enough. ErrConflict says that somebody
// else has written the record; the next sweep sees it as it is then.
func (s *Sweeper) sweepOne(ctx context.Context, user sendgate.UserID) error {
	r, err := s.store.Get(ctx, user)
	if err != nil || len(r.Pending) == 0 {
		return err
	}
	through, err := s.gotThrough(ctx, r)
	if err != nil {
		return err
	}
	if !through {
		return s.carrier.Carry(ctx, user)
	}
	pending, keep := len(r.Pending), s.now().Add(-pendingFor)
	r.Pending = slices.DeleteFunc(r.Pending, func(c Change) bool { return !c.At.After(keep) })
	if len(r.Pending) == pending {
		return nil
	}
	return s.store.Put(ctx, r, r.Revision)
}

// gotThrough tells whether every pending change of a record is logged, which
// means that it was announced, and Redis holds the record or a newer one.
func (s *Sweeper) gotThrough(ctx context.Context, r *Record) (bool, error) {
	cached := s.cache.Get(ctx, []sendgate.UserID{r.User})[0]
	if cached.Err != nil {
		return false, cached.Err
	}
	if cached.Preferences == nil || cached.Preferences.Revision < r.Revision {
		return false, nil
	}
	logged, err := s.store.Changes(ctx, r.User, r.Pending[0].Revision-1, len(r.Pending))
	return len(logged) == len(r.Pending), err
}
