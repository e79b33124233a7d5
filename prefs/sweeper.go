package prefs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
)

const (
	sweepEvery   = 2 * time.Second
	sweepLimit   = 3 * time.Second // of one lot of records
	sweepWorkers = 8               // lots at once
	sweepMost    = 2000            // records of a shard that one sweep carries on; the next one goes on
	shardsAtOnce = 4               // that are looked at
	shareLimit   = 250 * time.Millisecond
	maxRest      = 5 * time.Second // after a look that took long
)

// Sweeper carries on the changes that were cut off on their way: by a crash, a
// Redis that was away, a limit that ran out. It also tells its own gate of
// every pending change that the gate has not heard of, so that the gate obeys
// what Redis cannot tell it. Any number of gates may sweep the same store: each
// learns of everything, and they share the rest of the work.
type Sweeper struct {
	store   Store
	carrier *Carrier
	cache   Cache
	overlay Overlay
	shares  Shares
	log     *slog.Logger
	now     func() time.Time
	observe func(Backlog, error)

	seen     sightings
	unlisted error // why the last sweep could not list everything
}

// Shares divides the shards of the pending index among the gates that sweep it.
type Shares interface {
	// Take tells which shards are this gate's to sweep for the next seconds. A
	// shard that two gates take, or none for some seconds, does no harm.
	Take(ctx context.Context) ([PendingShards]bool, error)
}

// Backlog is what a sweep found pending.
type Backlog struct {
	Records int           // with pending changes
	Oldest  time.Duration // that a change has been pending, 0 if there is none
}

// SweeperOptions are what a Sweeper is made of. All are required.
type SweeperOptions struct {
	Store   Store
	Carrier *Carrier
	Cache   Cache
	Overlay Overlay
	Shares  Shares
	Log     *slog.Logger
	Now     func() time.Time
	// Observe is told by every sweep what was pending, or why that could not be
	// found out.
	Observe func(Backlog, error)
}

// NewSweeper makes a Sweeper. Run starts it.
func NewSweeper(o SweeperOptions) *Sweeper {
	return &Sweeper{
		store: o.Store, carrier: o.Carrier, cache: o.Cache, overlay: o.Overlay, shares: o.Shares, log: o.Log, now: o.Now, observe: o.Observe,
	}
}

// Run sweeps until the context ends, every two seconds; after a look at what is
// pending that took longer, it rests for a quarter of that. known is called once
// the gate knows every change that was pending when it began. What this gate
// obeys does not wait for what is carried on, which may take its time.
func (s *Sweeper) Run(ctx context.Context, known func()) {
	once := sync.OnceFunc(known)
	var carrying sync.WaitGroup
	defer carrying.Wait()
	carried := make(chan struct{}, 1) // holds one while nothing is being carried on
	carried <- struct{}{}
	for {
		began := s.now()
		work, err := s.look(ctx, once)
		s.complain(ctx, "not every pending change could be read", err)
		select {
		case <-carried:
			carrying.Go(func() {
				s.complain(ctx, "not every pending change could be carried on", s.inLots(ctx, work, s.carryOn))
				carried <- struct{}{}
			})
		default: // the next sweep finds it again
		}
		took := s.now().Sub(began)
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(max(sweepEvery-took, took/4), maxRest)):
		}
	}
}

func (s *Sweeper) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.Warn(what, "error", err)
	}
}

// Sweep looks at every record with pending changes once. It has this gate learn
// of all of them first, unless it has heard of them; then it carries on those
// of this gate's share that were cut off, and clears what has got through for
// good. What has got through is left alone until it changes, is ripe to be
// cleared, or this gate may have missed something. One record that cannot be
// carried on does not keep others from it; the error is one of theirs.
func (s *Sweeper) Sweep(ctx context.Context) error {
	work, err := s.look(ctx, func() {})
	return errors.Join(err, s.inLots(ctx, work, s.carryOn))
}

// look lists what is pending and has this gate know all of it, and calls known
// then. work is what is this gate's to carry on.
func (s *Sweeper) look(ctx context.Context, known func()) (work []sendgate.UserID, unknown error) {
	began, epoch := s.now(), s.overlay.Epoch()
	s.seen.begin(epoch)
	mine := s.share(ctx)
	var found [PendingShards]shardLook
	var looking errgroup.Group
	looking.SetLimit(shardsAtOnce)
	for shard := range PendingShards {
		looking.Go(func() error {
			found[shard] = s.lookAt(ctx, shard, mine[shard], epoch, began)
			return nil
		})
	}
	_ = looking.Wait()
	var backlog Backlog
	s.unlisted = nil
	for _, f := range found {
		backlog.Records += f.backlog.Records
		backlog.Oldest = max(backlog.Oldest, f.backlog.Oldest)
		s.unlisted, unknown = cmp.Or(s.unlisted, f.unlisted), cmp.Or(unknown, f.unlisted, f.unknown)
		work = append(work, f.work...)
	}
	if ctx.Err() == nil {
		s.observe(backlog, s.unlisted)
	}
	if unknown == nil {
		known()
	}
	return work, unknown
}

// shardLook is what a look at one shard has found.
type shardLook struct {
	backlog           Backlog
	work              []sendgate.UserID
	unlisted, unknown error
}

func (s *Sweeper) lookAt(ctx context.Context, shard int, mine bool, epoch int64, now time.Time) (found shardLook) {
	pending, err := s.list(ctx, shard, now)
	found.unlisted, found.unknown = err, s.learn(ctx, pending, epoch)
	found.backlog.Records = len(pending)
	for _, e := range pending {
		found.backlog.Oldest = max(found.backlog.Oldest, now.Sub(e.Since))
	}
	found.work = s.unfinished(pending, mine, epoch, now)
	return found
}

// share is what is this gate's to sweep. While that cannot be found out,
// everything is. A gate that cannot read the store takes no share away from
// others.
func (s *Sweeper) share(ctx context.Context) (mine [PendingShards]bool) {
	ctx, cancel := context.WithTimeout(ctx, shareLimit)
	defer cancel()
	err := s.unlisted
	if err == nil {
		mine, err = s.shares.Take(ctx)
	}
	if err != nil {
		for shard := range mine {
			mine[shard] = true
		}
	}
	return mine
}

// list lists what is pending in a shard, and forgets what is not any more.
func (s *Sweeper) list(ctx context.Context, shard int, now time.Time) (pending []PendingEntry, err error) {
	err = s.store.Pending(ctx, shard, func(e PendingEntry) error {
		pending = append(pending, e)
		return ctx.Err()
	})
	if err == nil {
		s.seen.see(shard, pending, now)
	}
	return pending, err
}

// learn has this gate know every one of these changes.
func (s *Sweeper) learn(ctx context.Context, pending []PendingEntry, epoch int64) error {
	var unknown []sendgate.UserID
	for _, e := range pending {
		if !s.knows(e, epoch) {
			unknown = append(unknown, e.User)
		}
	}
	return s.inLots(ctx, unknown, func(ctx context.Context, users []sendgate.UserID) (failed error) {
		for i, found := range s.store.GetMany(ctx, users) {
			if found.Err != nil {
				failed = cmp.Or(failed, found.Err)
				continue
			}
			s.overlay.ApplySince(sendgate.ConsentOf(users[i], &found.Record.Preferences), epoch)
		}
		return failed
	})
}

// knows tells whether this gate knows a pending change, and notes what it has
// heard. What its overlay has dropped since, because it was full, it does not
// know, unless Redis has it.
func (s *Sweeper) knows(e PendingEntry, epoch int64) bool {
	if e.Revision == 0 {
		return false
	}
	if s.seen.of(e.User, epoch).through >= e.Revision {
		return true
	}
	revision, announced := s.overlay.Known(e.User)
	if announced && revision >= e.Revision {
		s.seen.noteThrough(e.User, revision, epoch, s.now())
	}
	return revision >= e.Revision
}

// unfinished are those records of a shard that there is something to do about
// and that are this gate's, or overdue: what their own gate does not get done is
// anybody's. If there are too many for one sweep, it is the turn of any of them,
// so that some that cannot be carried on are in nobody's way.
func (s *Sweeper) unfinished(pending []PendingEntry, mine bool, epoch int64, now time.Time) (users []sendgate.UserID) {
	for _, e := range pending {
		seen := s.seen.of(e.User, epoch)
		through := e.Revision > 0 && seen.through >= e.Revision
		if age := now.Sub(e.Since); !through && age >= 0 && age < graceFor || through && !seen.ripe(now) {
			continue
		}
		if mine || seen.overdue(through, now) {
			users = append(users, e.User)
		}
	}
	if len(users) > sweepMost {
		first := rand.IntN(len(users))
		users = append(users[first:], users[:first]...)[:sweepMost]
	}
	return users
}

// inLots calls f for the users, many at a time, and returns one of the errors.
func (s *Sweeper) inLots(ctx context.Context, users []sendgate.UserID, f func(context.Context, []sendgate.UserID) error) error {
	var work errgroup.Group
	work.SetLimit(sweepWorkers)
	for some := range slices.Chunk(users, lotSize) {
		work.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, sweepLimit)
			defer cancel()
			return f(ctx, some)
		})
	}
	return work.Wait()
}
