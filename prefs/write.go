package prefs

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
)

// write repeats a conditional write until it is known to have been made, or
// known not to be. Every attempt carries the same change id: if an answer was
// lost, or the write lands late, the record says so when it is read again, and
// the edit is made once. made is the revision that the edit led to, or 0 where
// it changed nothing.
func (s *Service) write(ctx context.Context, user sendgate.UserID, ifRevision *int64, meta Meta, edit func(*Record) ([]Diff, error)) (_ *Record, made int64, _ error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	if err := s.edits.take(ctx, user); err != nil {
		return nil, 0, unavailable(err)
	}
	defer s.edits.give(user)
	change := Change{ID: ulid.Make().String(), Meta: meta}
	r, err := backoff.Retry(ctx, func() (*Record, error) {
		r, err := s.store.Get(ctx, user)
		if err != nil || madeAt(r, change.ID) > 0 {
			return r, err
		}
		return s.attempt(ctx, r, ifRevision, change, edit)
	}, backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: time.Millisecond, MaxInterval: 50 * time.Millisecond, Multiplier: 1.5, RandomizationFactor: 0.5,
	}))
	if err != nil {
		return nil, 0, unavailable(err)
	}
	return r, madeAt(r, change.ID), nil
}

// attempt edits a record as it was read and writes it. An error that is not
// permanent makes it worth reading the record again.
func (s *Service) attempt(ctx context.Context, r *Record, ifRevision *int64, change Change, edit func(*Record) ([]Diff, error)) (*Record, error) {
	if ifRevision != nil && *ifRevision != r.Revision {
		return nil, backoff.Permanent(sendgate.Errorf(sendgate.CodeRevisionMismatch, "If-Match", "the preferences are at revision %d", r.Revision))
	}
	next := r.Clone()
	diffs, err := edit(next)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	if len(diffs) == 0 {
		return r, nil
	}
	now := s.now().UTC().Truncate(time.Millisecond)
	next.Revision, next.UpdatedAt = r.Revision+1, now
	change.Revision, change.At, change.What = next.Revision, now, diffs
	next.Pending = append(next.Pending, change)
	if err := s.fit(ctx, next); err != nil {
		return nil, err
	}
	return next, s.store.Put(ctx, next, r.Revision)
}

// fit makes a record small enough to be stored. Pending changes that would
// make it too large are logged first and then kept by their revision alone, so
// that nobody's way out is blocked by what is still on its way.
func (s *Service) fit(ctx context.Context, r *Record) error {
	tooLarge := checkSize(r)
	if tooLarge == nil {
		return nil
	}
	earlier := r.Pending[:len(r.Pending)-1]
	var logging errgroup.Group
	logging.SetLimit(fitWorkers)
	for i, c := range earlier {
		if c.What == nil {
			continue
		}
		logging.Go(func() error { return s.store.AppendChange(ctx, r.User, c) })
		earlier[i] = Change{ID: c.ID, Revision: c.Revision, At: c.At}
	}
	if err := logging.Wait(); err != nil {
		return err
	}
	if err := checkSize(r); err != nil {
		return backoff.Permanent(err)
	}
	return nil
}

func checkSize(r *Record) error {
	data, err := EncodeRecord(r)
	if err != nil {
		return err
	}
	if len(data) > MaxRecordBytes {
		return sendgate.Errorf(sendgate.CodeRecordTooLarge, "", "the record would have %d bytes, and at most %d are stored", len(data), MaxRecordBytes)
	}
	return nil
}

// madeAt is the revision that an edit led to, if it stands in a record, and 0
// otherwise. Pending changes stay there for longer than any edit takes.
func madeAt(r *Record, changeID string) int64 {
	for _, c := range r.Pending {
		if c.ID == changeID {
			return c.Revision
		}
	}
	return 0
}
