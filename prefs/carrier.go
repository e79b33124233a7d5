package prefs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
)

// Announcer tells every gate of users' states. Package feed has one.
type Announcer interface {
	// Clock tells what the clock of the Redis that a user's keys live in said,
	// a few seconds ago at the most.
	Clock(ctx context.Context, user sendgate.UserID) (time.Time, error)
	// Announce does this for each of many states, in one script each: it puts
	// the record into the cache, unless that holds a newer one, appends the
	// consent to the user's change stream and publishes it. What was read too
	// long ago is refused. The errors are in the order of the states.
	Announce(ctx context.Context, states []sendgate.Announcement) []error
}

const (
	lotSize    = 100             // records carried on in one round trip
	lotsAtOnce = 8               // such lots at once, of those that requests wait for
	lotQueue   = 10_000          // records that wait for their lot
	lotLimit   = 2 * time.Second // of carrying one lot on
	// partLimit is of one call to Redis about many users: a part of it that does
	// not answer holds up what belongs to others for no longer.
	partLimit  = 500 * time.Millisecond
	logWorkers = 32 // changes logged at once
)

// Reading is a record as the store had it at some moment since Redis' clock
// said ReadAt. It must not be changed any more.
type Reading struct {
	Record *Record
	ReadAt time.Time
	From   int64 // revision of the first pending change that is to be logged
}

// Carrier carries changes from the store to every gate and to the audit log.
// What it does can be repeated at any time, by any gate, without harm. What
// comes while it is busy is carried on together, in lots: under load there are
// fewer round trips, and without load nobody waits for others.
type Carrier struct {
	store interface {
		RecordStore
		AuditLog
	}
	announcer Announcer
	lots      *lots
}

// NewCarrier makes a Carrier. Close ends it.
func NewCarrier(store interface {
	RecordStore
	AuditLog
}, announcer Announcer) *Carrier {
	c := &Carrier{store: store, announcer: announcer}
	c.lots = newLots(lotSize, lotsAtOnce, lotQueue, func(readings []Reading) []error {
		ctx, cancel := context.WithTimeout(context.Background(), lotLimit)
		defer cancel()
		return c.CarryAll(ctx, readings)
	})
	return c
}

// Close waits for what is being carried on. Nothing may be begun any more.
func (c *Carrier) Close() { c.lots.close() }

// Clock tells what Redis' clock said lately: whatever is read from the store
// from now on was read after that.
func (c *Carrier) Clock(ctx context.Context, user sendgate.UserID) (time.Time, error) {
	at, err := c.announcer.Clock(ctx, user)
	if err != nil {
		return at, fmt.Errorf("read the clock of Redis: %w", err)
	}
	return at, nil
}

// Carry announces a user's state, and then logs the changes that are pending in
// it. It returns when that is done or the context ends; in the latter case it
// may be done yet. The record must not be changed any more.
func (c *Carrier) Carry(ctx context.Context, r Reading) error { return c.lots.join(ctx, r) }

// CarryAll carries on many records at once, and returns their errors in order.
// What was announced is never older than what was logged, so that a logged
// change has been announced.
func (c *Carrier) CarryAll(ctx context.Context, readings []Reading) []error {
	errs := make([]error, len(readings))
	states := make([]sendgate.Announcement, 0, len(readings))
	which := make([]int, 0, len(readings))
	for i, r := range readings {
		body, err := EncodePreferences(&r.Record.Preferences)
		if err != nil {
			errs[i] = err
			continue
		}
		which = append(which, i)
		states = append(states, sendgate.Announcement{Consent: sendgate.ConsentOf(r.Record.User, &r.Record.Preferences), Record: body, ReadAt: r.ReadAt})
	}
	announced := c.announce(ctx, states)
	var logging errgroup.Group
	logging.SetLimit(logWorkers)
	for k, i := range which {
		if announced[k] != nil {
			errs[i] = fmt.Errorf("announce: %w", announced[k])
			continue
		}
		logging.Go(func() error {
			errs[i] = c.logPending(ctx, readings[i])
			return nil
		})
	}
	_ = logging.Wait() // each has its own error
	return errs
}

func (c *Carrier) announce(ctx context.Context, states []sendgate.Announcement) []error {
	ctx, cancel := context.WithTimeout(ctx, partLimit)
	defer cancel()
	return c.announcer.Announce(ctx, states)
}

// logPending logs what is pending on a record, unless it is logged already.
func (c *Carrier) logPending(ctx context.Context, r Reading) error {
	for _, change := range r.Record.Pending {
		if change.Revision < r.From {
			continue
		}
		if err := c.store.AppendChange(ctx, r.Record.User, change); err != nil {
			return fmt.Errorf("log the change: %w", err)
		}
	}
	return nil
}

// Read reads many users' records, so that they can be carried on, and returns
// their errors in order.
func (c *Carrier) Read(ctx context.Context, users []sendgate.UserID) ([]Reading, []error) {
	readings, errs := make([]Reading, len(users)), make([]error, len(users))
	c.readClocks(ctx, users, readings, errs)
	for i, found := range c.store.GetMany(ctx, users) {
		readings[i].Record = found.Record
		if errs[i] == nil && found.Err != nil {
			errs[i] = fmt.Errorf("read the record again: %w", found.Err)
		}
	}
	return readings, errs
}

func (c *Carrier) readClocks(ctx context.Context, users []sendgate.UserID, readings []Reading, errs []error) {
	ctx, cancel := context.WithTimeout(ctx, partLimit)
	defer cancel()
	var asking sync.WaitGroup
	for i, user := range users {
		asking.Go(func() { readings[i].ReadAt, errs[i] = c.Clock(ctx, user) })
	}
	asking.Wait()
}
