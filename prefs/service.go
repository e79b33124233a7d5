package prefs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

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
	// the last gap, -1 if none was, and whether it was announced to this gate
	// since then.
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
		edits: newTurns(mostEdits),
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
		err = s.carrier.Carry(ctx, Reading{Record: r, ReadAt: readAt.at, Made: made})
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

// readClock reads Redis' clock while the store is at work, and tells what it
// said when that began, or before: what is known of the store afterwards was true
// since.
func (s *Service) readClock(ctx context.Context, user sendgate.UserID) <-chan clockRead {
	read := make(chan clockRead, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
		defer cancel()
		began := s.now()
		at, err := s.carrier.Clock(ctx, user)
		read <- clockRead{at.Add(began.Sub(s.now())), err}
	}()
	return read
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
