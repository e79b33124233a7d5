package bloom

import (
	"context"
	"errors"
	"fmt"

	"github.com/sendgate/sendgate"
)

// install puts the candidate in the place of the snapshot in use. A snapshot
// that can be relied on, at once or after another replay, is not given up for
// one that cannot, or not yet.
func (k *Keeper) install(ctx context.Context) error {
	next, err := k.cover(ctx, k.candidate)
	if err != nil && k.o.Live.Snapshot() != nil && k.keeps(ctx) {
		k.patience.lose()
		return fmt.Errorf("generation %d waits: %w", k.candidate.header.Generation, err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k.use(next)
	k.candidate = nil
	k.o.Loaded(Loaded)
	h := next.snapshot.header
	k.o.Log.Info("a filter was taken into use", "generation", h.Generation, "built", h.BuiltAt, "bytes", next.snapshot.size,
		"opt_outs", h.Keys.Rejecting(), "opt_ins", h.Keys.OptIns, "false_positive_rate", h.FalsePositiveRate(), "rejections_verified", !next.covered)
	return nil
}

// keeps tells whether the snapshot in use is worth keeping although the
// candidate cannot be covered: while the streams are not followed, nobody knows.
func (k *Keeper) keeps(ctx context.Context) bool {
	return k.o.Live.Current() || !k.o.Live.overlay.Live() || k.recover(ctx) == nil
}

// recover covers the snapshot in use once more.
func (k *Keeper) recover(ctx context.Context) error {
	again, err := k.cover(ctx, k.o.Live.Snapshot())
	if err != nil {
		k.patience.lose()
		return err
	}
	k.use(again)
	k.o.Log.Info("the filter in use can be relied on again", "generation", k.generation())
	return nil
}

// use makes a snapshot the one in use. What it has is dropped from the overlay
// afterwards, so that a lookup which misses it there finds it here.
func (k *Keeper) use(s *standing) {
	k.o.Live.standing.Store(s)
	k.o.Live.overlay.watchFor(s.watch)
	if s.covered {
		k.o.Live.overlay.trim(s.snapshot.header.Position, keepFor)
	}
	k.patience = patience{}
}

// patience spaces attempts that fail: it lets every one through at first, then
// every second, fourth and so on, up to mostSkipped.
type patience struct{ failures, skip int }

const mostSkipped = 32

func (p *patience) lose() {
	p.skip = min(1<<p.failures-1, mostSkipped)
	p.failures = min(p.failures+1, 10)
}

func (p *patience) over() bool {
	if p.skip > 0 {
		p.skip--
		return false
	}
	return true
}

// errNotFollowing says that the streams have not been followed from any moment
// on.
var errNotFollowing = errors.New("the change streams are not being followed yet")

// cover sees to it that the overlay knows of every change since a snapshot's
// position. What comes after the replay, the follower hands on: it has a
// cursor in every stream from before, and no gap since, or the epoch would
// have moved. The result is the snapshot as it can be put into use, and covered
// if there is no error; from here on, what the overlay drops is noticed for it
// as well as for the one in use.
func (k *Keeper) cover(ctx context.Context, s *Snapshot) (*standing, error) {
	ctx, cancel := context.WithTimeout(ctx, replayLimit)
	defer cancel()
	overlay, result := k.o.Live.overlay, &standing{snapshot: s, since: k.o.Live.overlay.now(), watch: &watch{position: s.header.Position}}
	watches := []*watch{result.watch}
	if old := k.o.Live.standing.Load(); old != nil {
		watches = append(watches, old.watch)
		if old.snapshot == s {
			result.since = old.since
		}
	}
	overlay.watchFor(watches...)
	if !overlay.WasLive() {
		return result, errNotFollowing
	}
	k.replays++
	replay := k.replays
	result.epoch = overlay.Epoch()
	err := k.o.Replayer.Replay(ctx, s.header.Position, func(c sendgate.Consent, at sendgate.Place) {
		overlay.replayed(c, at, replay)
	})
	if err != nil {
		return result, fmt.Errorf("read what changed since it was built: %w", err)
	}
	overlay.confirm(replay, result.epoch)
	switch {
	case overlay.Epoch() != result.epoch:
		return result, errors.New("the change streams had a gap while it was being taken into use")
	case result.watch.lost.Load():
		return result, errors.New("more users have changed since it was built than are kept in memory")
	}
	result.covered = true
	return result, nil
}
