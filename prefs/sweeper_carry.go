package prefs

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
)

// carryOn announces users' states again, and clears those of their changes that
// are ripe: seen to have got through long enough ago, held by Redis still, and
// now announced once more, so that what is cleared was announced after any loss
// of the seconds before. It returns one of the errors.
func (s *Sweeper) carryOn(ctx context.Context, users []sendgate.UserID) error {
	epoch := s.overlay.Epoch()
	readings, errs := s.carrier.Read(ctx, users)
	var pending []Reading
	for i, r := range readings {
		if errs[i] != nil || len(r.Record.Pending) == 0 {
			continue
		}
		s.overlay.ApplySince(sendgate.ConsentOf(users[i], &r.Record.Preferences), epoch)
		if seen := s.seen.of(users[i], epoch); seen.through < r.Record.Revision || seen.ripe(s.now()) { // the index may lag
			pending = append(pending, r)
		}
	}
	ripe := s.ripe(ctx, pending, epoch)
	carried := s.carrier.CarryAll(ctx, pending)
	var clearing errgroup.Group
	clearing.SetLimit(logWorkers)
	for i, r := range pending {
		if carried[i] != nil {
			continue
		}
		s.seen.noteThrough(r.Record.User, r.Record.Revision, epoch, s.now())
		if ripe[i] > 0 {
			clearing.Go(func() error { return s.clear(ctx, r.Record, ripe[i], epoch) })
		}
	}
	return cmp.Or(clearing.Wait(), cmp.Or(errs...), cmp.Or(carried...))
}

// ripe is the revision up to which each record's changes may be cleared, 0 if
// none may.
func (s *Sweeper) ripe(ctx context.Context, readings []Reading, epoch int64) []int64 {
	upTo := make([]int64, len(readings))
	users, which := []sendgate.UserID(nil), []int(nil)
	for i, r := range readings {
		if seen := s.seen.of(r.Record.User, epoch); seen.ripe(s.now()) {
			upTo[i] = seen.ripens
			users, which = append(users, r.Record.User), append(which, i)
		}
	}
	if len(users) == 0 {
		return upTo
	}
	ctx, cancel := context.WithTimeout(ctx, partLimit)
	defer cancel()
	for k, held := range s.cache.Get(ctx, users) {
		i := which[k]
		if held.Preferences == nil || held.Preferences.Revision < upTo[i] {
			s.seen.noteLost(users[k], epoch)
			upTo[i] = 0
		}
	}
	return upTo
}

// clear clears a record's changes up to a revision. Where somebody else has
// written the record, the next sweep sees it as it is then.
func (s *Sweeper) clear(ctx context.Context, r *Record, upTo, epoch int64) error {
	if s.overlay.Epoch() != epoch { // Redis may have lost it just now
		return nil
	}
	cleared := r.Clone()
	cleared.Pending = slices.DeleteFunc(cleared.Pending, func(c Change) bool { return c.Revision <= upTo })
	err := s.store.Put(ctx, cleared, r.Revision)
	if errors.Is(err, ErrConflict) {
		return nil
	}
	if err == nil {
		s.seen.noteCleared(r.User, epoch, s.now())
	}
	return err
}
