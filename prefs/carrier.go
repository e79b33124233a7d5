package prefs

import (
	"context"
	"fmt"
	"time"

	"github.com/sendgate/sendgate"
)

// Announcer tells every gate of a user's state. Package feed has one.
type Announcer interface {
	// Clock reads the clock of the Redis that a user's keys live in.
	Clock(ctx context.Context, user sendgate.UserID) (time.Time, error)
	// Announce puts the record into the cache, unless that holds a newer one,
	// appends the consent to the user's change stream and publishes it, all in
	// one script. body is the encoded preferences that consent is from, and
	// readAt is what Clock said before they were read from the store; what was
	// read too long ago is refused.
	Announce(ctx context.Context, c sendgate.Consent, body []byte, readAt time.Time) error
}

// Carrier carries changes from the store to every gate and to the audit log.
// What it does can be repeated at any time, by any gate, without harm.
type Carrier struct {
	store interface {
		RecordStore
		AuditLog
	}
	announcer Announcer
}

// NewCarrier makes a Carrier.
func NewCarrier(store interface {
	RecordStore
	AuditLog
}, announcer Announcer) *Carrier {
	return &Carrier{store: store, announcer: announcer}
}

// Carry announces a user's state as it is in the store now, and then logs the
// changes that are pending there, from a revision on. What was announced is
// never older than what was logged, so that a logged change has been announced.
func (c *Carrier) Carry(ctx context.Context, user sendgate.UserID, from int64) error {
	readAt, err := c.announcer.Clock(ctx, user)
	if err != nil {
		return fmt.Errorf("read the clock of Redis: %w", err)
	}
	r, err := c.store.Get(ctx, user)
	if err != nil {
		return fmt.Errorf("read the record again: %w", err)
	}
	body, err := EncodePreferences(&r.Preferences)
	if err != nil {
		return err
	}
	if err := c.announcer.Announce(ctx, sendgate.ConsentOf(user, &r.Preferences), body, readAt); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	for _, change := range r.Pending {
		if change.Revision < from {
			continue
		}
		if err := c.store.AppendChange(ctx, user, change); err != nil {
			return fmt.Errorf("log the change: %w", err)
		}
	}
	return nil
}
