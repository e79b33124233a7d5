package prefs

import (
	"cmp"
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
	observe func(oldest time.Duration, err error)

	mu   sync.Mutex
	seen map[sendgate.UserID]sighting
}

// sighting is when this sweeper first saw the changes of a record pending, up
// to a revision. Gates' clocks may be apart, so that no gate goes by the time
// that another one has put on a change.
type sighting struct {
	revision int64
	at       time.Time
	// told is the revision that this gate's overlay was told of, and through
	// the one that was seen to have got through, both while the overlay's epoch
	// was the one that stands here.
	told, through int64
	epoch         int64
}

// SweeperOptions are what a Sweeper is made of. All are required.
type SweeperOptions struct {
	Store   Store
	Carrier *Carrier
	Cache   Cache
	Overlay Overlay
	Log     *slog.Logger
	Now     func() time.Time
	// Observe is told by every sweep how long the oldest pending change has
	// been so, 0 if there is none, or why that could not be found out.
	Observe func(oldest time.Duration, err error)
}

// NewSweeper makes a Sweeper. Run starts it.
func NewSweeper(o SweeperOptions) *Sweeper {
	return &Sweeper{
		store: o.Store, carrier: o.Carrier, cache: o.Cache, overlay: o.Overlay, log: o.Log, now: o.Now, observe: o.Observe,
		seen: map[sendgate.UserID]sighting{},
	}
}

// Run sweeps every two seconds until the context ends. known is called once the
// gate knows every change that was pending when it began.
func (s *Sweeper) Run(ctx context.Context, known func()) {
	first := sync.OnceFunc(known)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		err := s.sweep(ctx, first)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errNotKnown):
			s.log.Warn("not every pending change could be read", "error", err)
		case err != nil:
			s.log.Warn("not every pending change could be carried on", "error", err)
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

// Sweep looks at every record with pending changes once. It obeys all of them
// here first, and calls known then; carries on what was cut off, and clears
// what has got through for good. A record that was looked at before is left
// alone until it changes, is due to be cleared, or this gate may have missed
// something: Redis may have lost it too. One record that cannot be carried on
// does not keep others from it; the error is one of theirs.
func (s *Sweeper) Sweep(ctx context.Context) error { return s.sweep(ctx, func() {}) }

func (s *Sweeper) sweep(ctx context.Context, known func()) error {
	began, epoch := s.now(), s.overlay.Epoch()
	pending, unlisted := s.list(ctx, began)
	unlearned := cmp.Or(unlisted, s.forEach(ctx, pending, epoch, s.learn))
	if unlearned == nil {
		known()
	}
	failed := s.forEach(ctx, pending, epoch, func(ctx context.Context, e PendingEntry, epoch int64) error {
		if age := began.Sub(e.Since); age >= 0 && age < graceFor || s.settled(e, epoch) {
			return nil
		}
		return s.sweepOne(ctx, e.User)
	})
	if unlearned != nil {
		return errors.Join(errNotKnown, unlearned)
	}
	return failed
}

// list lists what is pending, and forgets what is not any more.
func (s *Sweeper) list(ctx context.Context, now time.Time) (pending []PendingEntry, err error) {
	var oldest time.Duration
	users := map[sendgate.UserID]bool{}
	for shard := range PendingShards {
		failed := s.store.Pending(ctx, shard, func(e PendingEntry) error {
			oldest = max(oldest, now.Sub(e.Since))
			pending, users[e.User] = append(pending, e), true
			return ctx.Err()
		})
		err = cmp.Or(err, failed)
	}
	if err == nil {
		s.forget(users)
	}
	if ctx.Err() == nil {
		s.observe(oldest, err)
	}
	return pending, err
}

// forEach calls f for every entry, several at a time, and returns one of their
// errors, once all have been called.
func (s *Sweeper) forEach(ctx context.Context, pending []PendingEntry, epoch int64, f func(context.Context, PendingEntry, int64) error) error {
	var workers errgroup.Group
	workers.SetLimit(sweepWorkers)
	for _, e := range pending {
		workers.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, sweepLimit)
			defer cancel()
			if err := f(ctx, e, epoch); err != nil && !errors.Is(err, ErrConflict) {
				return err
			}
			return nil
		})
	}
	return workers.Wait()
}

// learn tells this gate of a record's changes, unless it was told of them
// before and may not have missed anything since.
func (s *Sweeper) learn(ctx context.Context, e PendingEntry, epoch int64) error {
	if seen := s.sight(e.User); e.Revision != 0 && seen.epoch == epoch && seen.told >= e.Revision {
		return nil
	}
	r, err := s.store.Get(ctx, e.User)
	if err != nil || len(r.Pending) == 0 {
		return err
	}
	s.overlay.ApplySince(sendgate.ConsentOf(e.User, &r.Preferences), epoch)
	s.noteSight(e.User, epoch, func(seen *sighting) { seen.told = r.Revision })
	return nil
}

// settled tells whether a record has got through, and is not due to be cleared.
func (s *Sweeper) settled(e PendingEntry, epoch int64) bool {
	seen := s.sight(e.User)
	return e.Revision != 0 && seen.epoch == epoch && seen.through == e.Revision && s.now().Sub(seen.at) < pendingFor
}

func (s *Sweeper) sight(user sendgate.UserID) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[user]
}

// noteSight notes what was seen while the overlay's epoch was the one given.
func (s *Sweeper) noteSight(user sendgate.UserID, epoch int64, note func(*sighting)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[user]
	if seen.epoch != epoch {
		seen.told, seen.through, seen.epoch = 0, 0, epoch
	}
	note(&seen)
	s.seen[user] = seen
}

// sweepOne carries a record on unless it has got through, and clears those of
// its changes that are pending for long enough, once they have been announced
// again: what is cleared was announced after any loss of the seconds before.
// ErrConflict says that somebody else has written the record; the next sweep
// sees it as it is then.
func (s *Sweeper) sweepOne(ctx context.Context, user sendgate.UserID) error {
	epoch := s.overlay.Epoch()
	r, err := s.store.Get(ctx, user)
	if err != nil || len(r.Pending) == 0 {
		return err
	}
	s.overlay.ApplySince(sendgate.ConsentOf(user, &r.Preferences), epoch)
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
	if through {
		s.noteSight(user, epoch, func(seen *sighting) { seen.told, seen.through = r.Revision, r.Revision })
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
	now, first := s.now(), s.seen[r.User]
	if !first.at.IsZero() && first.revision >= r.Pending[0].Revision {
		return first.revision, now.Sub(first.at) >= pendingFor
	}
	first.revision, first.at = r.Revision, now
	s.seen[r.User] = first
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
