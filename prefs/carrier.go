package prefs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
)

// Announcer tells every gate of users' states. Package feed has one.
type Announcer interface {
	// Node names the Redis that a user's keys live in: those of one name answer,
	// or do not, together.
	Node(ctx context.Context, user sendgate.UserID) string
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
	lotsAtOnce = 8               // such lots of one Redis at once, of those that requests wait for
	lotQueue   = 2000            // records of one Redis that wait for their lot
	lotLimit   = 2 * time.Second // of carrying one lot on
	// partLimit is of one call to Redis about many users: a part of it that does
	// not answer holds up what belongs to others for no longer.
	partLimit  = 500 * time.Millisecond
	logWorkers = 32          // records whose changes are logged, or cleared, at once
	logAtOnce  = 16          // changes of one of them
	logLimit   = time.Second // of one record, so that it keeps no others from being cleared
)

// Reading is a record as the store had it at some moment since Redis' clock
// said ReadAt. It must not be changed any more.
type Reading struct {
	Record *Record
	ReadAt time.Time
	// Made is the revision of the one change that is to be logged; 0 means all
	// pending ones that are not logged yet.
	Made int64
}

// Carrier carries changes from the store to every gate and to the audit log.
// What it does can be repeated at any time, by any gate, without harm. What
// comes while it is busy is carried on together, in lots: under load there are
// fewer round trips, and without load nobody waits for others. Each Redis of a
// cluster has lots of its own, so that one which hangs holds up nobody else's.
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

// Carry announces a user's state, and then logs what is to be logged of it. It
// returns when that is done or the context ends; in the latter case it may be
// done yet.
func (c *Carrier) Carry(ctx context.Context, r Reading) error {
	return c.lots.join(ctx, c.announcer.Node(ctx, r.Record.User), r)
}

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

// logPending logs what is to be logged of a record.
func (c *Carrier) logPending(ctx context.Context, r Reading) error {
	ctx, cancel := context.WithTimeout(ctx, logLimit)
	defer cancel()
	missing, err := c.unlogged(ctx, r)
	if err != nil {
		return fmt.Errorf("look what is logged: %w", err)
	}
	var logging errgroup.Group
	logging.SetLimit(logAtOnce)
	for _, change := range missing {
		logging.Go(func() error { return c.store.AppendChange(ctx, r.Record.User, change) })
	}
	if err := logging.Wait(); err != nil {
		return fmt.Errorf("log the change: %w", err)
	}
	return nil
}

// unlogged are the changes of a record that are to be logged. Of many that are
// pending most are logged as a rule, and all are looked up in one call.
func (c *Carrier) unlogged(ctx context.Context, r Reading) (missing []Change, err error) {
	pending := r.Record.Pending
	if r.Made > 0 {
		return slices.DeleteFunc(slices.Clone(pending), func(c Change) bool { return c.Revision != r.Made }), nil
	}
	if len(pending) == 0 {
		return nil, nil
	}
	logged, err := c.store.Changes(ctx, r.Record.User, pending[0].Revision-1, len(pending))
	if err != nil {
		return nil, err
	}
	known := make(map[int64]bool, len(logged))
	for _, change := range logged {
		known[change.Revision] = true
	}
	return slices.DeleteFunc(slices.Clone(pending), func(c Change) bool { return known[c.Revision] }), nil
}

// Read reads many users' records, so that they can be carried on, and returns
// their errors in order. Those whose Redis does not answer are not read.
func (c *Carrier) Read(ctx context.Context, users []sendgate.UserID) ([]Reading, []error) {
	readings, errs := make([]Reading, len(users)), make([]error, len(users))
	c.readClocks(ctx, users, readings, errs)
	var asked []sendgate.UserID
	var which []int
	for i, user := range users {
		if errs[i] == nil {
			asked, which = append(asked, user), append(which, i)
		}
	}
	for k, found := range c.store.GetMany(ctx, asked) {
		readings[which[k]].Record = found.Record
		if found.Err != nil {
			errs[which[k]] = fmt.Errorf("read the record again: %w", found.Err)
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
