package prefs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
)

const (
	sweepEvery   = 2 * time.Second
	sweepLimit   = 2 * time.Second // of carrying one record on
	sweepWorkers = 16              // records at once

	// graceFor is how long a change is left to the request that made it.
	graceFor = time.Second
	// pendingFor is how long a change stays pending at the least, as seen by
	// the gate that clears it. If Redis loses its last seconds in a failover,
	// the change is still here to be announced again.
	pendingFor = 30 * time.Second
)

// Sweeper carries on the changes that were cut off on their way: by a crash, a
// Redis that was away, a limit that ran out. It also tells its own gate of
// every pending change, so that the gate obeys what Redis cannot tell it. Any
// number of gates may sweep the same store.
type Sweeper struct {
	store   Store
	carrier *Carrier
	cache   Cache
	overlay Overlay
	log     *slog.Logger
	now     func() time.Time
	observe func(oldest time.Duration)

	mu   sync.Mutex
	seen map[sendgate.UserID]sighting
}

// sighting is when this sweeper first saw the changes of a record pending, up
// to a revision. Gates' clocks may be apart, so that no gate goes by the time
// that another one has put on a change.
type sighting struct {
	revision int64
	at       time.Time
}

// SweeperOptions are what a Sweeper is made of. All are required.
type SweeperOptions struct {
	Store   Store
	Carrier *Carrier
	Cache   Cache
	Overlay Overlay
	Log     *slog.Logger
	Now     func() time.Time
	Observe func(oldest time.Duration) // told how long the oldest pending change has been so; 0 if there is none
}

// NewSweeper makes a Sweeper. Run starts it.
func NewSweeper(o SweeperOptions) *Sweeper {
	return &Sweeper{
		store: o.Store, carrier: o.Carrier, cache: o.Cache, overlay: o.Overlay, log: o.Log, now: o.Now, observe: o.Observe,
		seen: map[sendgate.UserID]sighting{},
	}
}

// Run sweeps every two seconds until the context ends. first is called once
// the first sweep is done: from then on the gate knows every pending change.
func (s *Sweeper) Run(ctx context.Context, first func()) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		err := s.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errNotKnown):
			s.log.Warn("not every pending change could be read", "error", err)
		default:
			if err != nil {
				s.log.Warn("not every pending change could be carried on", "error", err)
			}
			first()
			first = func() {}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// errNotKnown marks a sweep that did not get to see every pending change.
var errNotKnown = errors.New("read pending changes")

// Sweep looks at every record with pending changes once. It carries on what
// was cut off, and clears what has got through for good. One record that
// cannot be carried on does not keep others from it; the error is one of
// theirs.
func (s *Sweeper) Sweep(ctx context.Context) error {
	began := s.now()
	var oldest time.Duration
	var failed, unlisted error // failed is the workers', unlisted this function's
	var workers errgroup.Group
	workers.SetLimit(sweepWorkers)
	pending := map[sendgate.UserID]bool{}
	for shard := range PendingShards {
		err := s.store.Pending(ctx, shard, func(e PendingEntry) error {
			age := began.Sub(e.Since)
			oldest = max(oldest, age)
			pending[e.User] = true
			workers.Go(func() error {
				ctx, cancel := context.WithTimeout(ctx, sweepLimit)
				defer cancel()
				if err := s.sweepOne(ctx, e.User, age >= 0 && age < graceFor); err != nil && !errors.Is(err, ErrConflict) {
					s.mu.Lock()
					defer s.mu.Unlock()
					if failed == nil || errors.Is(err, errNotKnown) {
						failed = err
					}
				}
				return nil
			})
			return ctx.Err()
		})
		if err != nil {
			unlisted = errors.Join(errNotKnown, err)
		}
	}
	_ = workers.Wait() // each has noted its own error
	s.forget(pending)
	s.observe(oldest)
	if unlisted != nil {
		return unlisted
	}
	return failed
}

// sweepOne obeys a record here, carries it on unless it has got through, and
// clears those of its changes that are pending for long enough, once they have
// been announced again: what is cleared was announced after any loss of the
// seconds before. ErrConflict says that somebody else has written the record;
// the next sweep sees it as it is then.
func (s *Sweeper) sweepOne(ctx context.Context, user sendgate.UserID, fresh bool) error {
	epoch := s.overlay.Epoch()
	r, err := s.store.Get(ctx, user)
	switch {
	case err != nil:
		return errors.Join(errNotKnown, err)
	case len(r.Pending) == 0:
		return nil
	}
	s.overlay.ApplySince(sendgate.ConsentOf(user, &r.Preferences), epoch)
	if fresh {
		return nil
	}
	upTo, due := s.due(r)
	through, err := s.gotThrough(ctx, r)
	if err != nil {
		return err
	}
	if due || !through {
		if err := s.carrier.Carry(ctx, user, 0); err != nil {
			return err
		}
	}
	if !due || !through {
		return nil
	}
	r.Pending = slices.DeleteFunc(r.Pending, func(c Change) bool { return c.Revision <= upTo })
	return s.store.Put(ctx, r, r.Revision)
}

// due tells whether changes of a record have been pending for long enough, and
// up to which revision.
func (s *Sweeper) due(r *Record) (upTo int64, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	first, ok := s.seen[r.User]
	if ok && first.revision >= r.Pending[0].Revision {
		return first.revision, now.Sub(first.at) >= pendingFor
	}
	s.seen[r.User] = sighting{revision: r.Revision, at: now}
	return r.Revision, false
}

// forget drops what was seen of records that are not pending any more.
func (s *Sweeper) forget(pending map[sendgate.UserID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for user := range s.seen {
		if !pending[user] {
			delete(s.seen, user)
		}
	}
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
