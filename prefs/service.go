package prefs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
)

const (
	writeLimit   = 5 * time.Second        // of one edit, until it is durable
	requestLimit = 250 * time.Millisecond // of carrying a change on within its request
	fitWorkers   = 64                     // changes logged at once, to make a record fit
)

// Overlay is this gate's own knowledge of who changed lately.
type Overlay interface {
	// Epoch counts the gaps in what this gate was told.
	Epoch() int64
	// Known tells up to which revision a user's state has been learned since
	// the last gap, -1 if none was, and whether it is from the change stream.
	Known(user sendgate.UserID) (revision int64, announced bool)
	// ApplySince takes a consent that was true at some moment since an epoch
	// was read.
	ApplySince(c sendgate.Consent, epoch int64)
}

// Service edits preferences. It is safe for concurrent use.
type Service struct {
	store interface {
		RecordStore
		AuditLog
	}
	carrier *Carrier
	overlay Overlay
	catalog func() *sendgate.Catalog
	log     *slog.Logger
	now     func() time.Time
	edits   *turns
}

// ServiceOptions are what a Service is made of. All are required.
type ServiceOptions struct {
	Store interface {
		RecordStore
		AuditLog
	}
	Carrier *Carrier
	Overlay Overlay
	Catalog func() *sendgate.Catalog
	Log     *slog.Logger
	Now     func() time.Time
}

// NewService makes a Service.
func NewService(o ServiceOptions) *Service {
	return &Service{
		store: o.Store, carrier: o.Carrier, overlay: o.Overlay, catalog: o.Catalog, log: o.Log, now: o.Now,
		edits: newTurns(),
	}
}

// Get reads a user's preferences from the store. A user whom nobody has seen
// has those of revision 0.
func (s *Service) Get(ctx context.Context, user sendgate.UserID) (*sendgate.Preferences, error) {
	if err := user.Validate("user_id"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	r, err := s.store.Get(ctx, user)
	if err != nil {
		return nil, unavailable(err)
	}
	return &r.Preferences, nil
}

// Update edits a user's preferences and returns them as they are then. If
// ifRevision is not nil and the user has another revision, nothing is changed
// and the error is CodeRevisionMismatch.
func (s *Service) Update(ctx context.Context, user sendgate.UserID, e Edit, ifRevision *int64, meta Meta) (*sendgate.Preferences, error) {
	if err := user.Validate("user_id"); err != nil {
		return nil, err
	}
	r, err := s.change(ctx, user, ifRevision, meta, func(r *Record) ([]Diff, error) { return e.apply(r, s.catalog()) })
	if err != nil {
		return nil, err
	}
	return &r.Preferences, nil
}

// Effect is what a call on holds led to.
type Effect struct {
	Preferences *sendgate.Preferences
	At          time.Time // when it was durable
}

// UnsubscribeAll places a hold.
func (s *Service) UnsubscribeAll(ctx context.Context, u Unsubscribe, meta Meta) (Effect, error) {
	hold, err := u.hold(s.now().Truncate(time.Millisecond))
	if err != nil {
		return Effect{}, err
	}
	if meta.Reason == "" {
		meta.Reason = u.Reason
	}
	r, err := s.change(ctx, u.User, nil, meta, func(r *Record) ([]Diff, error) { return placeHold(r, hold), nil })
	if err != nil {
		return Effect{}, err
	}
	at := s.now()
	for _, standing := range r.Holds {
		if standing.Source == hold.Source && !standing.At.Equal(hold.At) { // it stood before
			at = standing.At
		}
	}
	return Effect{Preferences: &r.Preferences, At: at}, nil
}

// Resubscribe lifts a hold. What was stored per topic is as it was.
func (s *Service) Resubscribe(ctx context.Context, u Resubscribe, meta Meta) (Effect, error) {
	source, err := u.source()
	if err != nil {
		return Effect{}, err
	}
	if meta.Reason == "" {
		meta.Reason = u.Reason
	}
	r, err := s.change(ctx, u.User, nil, meta, func(r *Record) ([]Diff, error) { return liftHold(r, source), nil })
	if err != nil {
		return Effect{}, err
	}
	return Effect{Preferences: &r.Preferences, At: s.now()}, nil
}

// Changes lists a user's changes of a revision greater than after, at most
// limit of them. Changes that have not reached the audit log yet are included.
func (s *Service) Changes(ctx context.Context, user sendgate.UserID, after int64, limit int) ([]Change, error) {
	if err := user.Validate("user_id"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	// The record comes first: what is cleared from it in between is in the log by then.
	r, err := s.store.Get(ctx, user)
	if err != nil {
		return nil, unavailable(err)
	}
	logged, err := s.store.Changes(ctx, user, after, limit)
	if err != nil {
		return nil, unavailable(err)
	}
	return mergeChanges(logged, r.Pending, after, limit), nil
}

// change makes one edit durable, obeys it here, and carries it on as far as
// it gets in time.
func (s *Service) change(ctx context.Context, user sendgate.UserID, ifRevision *int64, meta Meta, edit func(*Record) ([]Diff, error)) (*Record, error) {
	if err := meta.Validate(); err != nil {
		return nil, err
	}
	epoch := s.overlay.Epoch()
	clock := s.readClock(ctx, user)
	r, made, err := s.write(ctx, user, ifRevision, meta, edit)
	readAt := <-clock
	if err != nil {
		return nil, err
	}
	// From here on the change is durable: it is obeyed here at once, and a
	// caller who has gone away stops nothing. Where nothing was changed and
	// nothing is pending, every gate has been told before.
	if len(r.Pending) == 0 {
		return r, nil
	}
	s.overlay.ApplySince(sendgate.ConsentOf(user, &r.Preferences), epoch)
	err = readAt.err
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
		defer cancel()
		err = s.carrier.Carry(ctx, Reading{Record: r, ReadAt: readAt.at, From: made})
	}
	if err != nil {
		s.log.Warn("a change did not get through at once; the sweep will carry it on", "error", err)
	}
	return r, nil
}

// clockRead is what Redis' clock said, or why it did not.
type clockRead struct {
	at  time.Time
	err error
}

// readClock reads Redis' clock while the store is at work. What is known of the
// store afterwards was true since.
func (s *Service) readClock(ctx context.Context, user sendgate.UserID) <-chan clockRead {
	read := make(chan clockRead, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		at, err := s.carrier.Clock(ctx, user)
		read <- clockRead{at, err}
	}()
	return read
}

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

// mergeChanges puts logged and pending changes in one list by revision; many
// stand in both.
func mergeChanges(logged, pending []Change, after int64, limit int) []Change {
	byRevision := map[int64]Change{}
	for _, c := range slices.Concat(pending, logged) {
		if c.Revision > after {
			byRevision[c.Revision] = c
		}
	}
	merged := make([]Change, 0, len(byRevision))
	for _, revision := range slices.Sorted(maps.Keys(byRevision)) {
		merged = append(merged, byRevision[revision])
	}
	return merged[:min(limit, len(merged))]
}

// unavailable is what a caller is told when the store did not do its part.
func unavailable(err error) error {
	var own *sendgate.Error
	var many sendgate.Errors
	if errors.As(err, &own) || errors.As(err, &many) {
		return err
	}
	return &sendgate.Error{Code: sendgate.CodeStoreUnavailable, Detail: "the store did not answer: nothing was written, or it is not known; repeat the call", Err: err}
}
