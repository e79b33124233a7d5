package bloom

import (
	"sync/atomic"
	"time"

	"github.com/sendgate/sendgate"
)

// Live is the snapshot in use. It implements sendgate.Filter, and is safe for
// concurrent use: a lookup reads one pointer and takes no lock.
type Live struct {
	overlay  *Overlay
	rejected func(sendgate.UserID, sendgate.Setting)
	standing atomic.Pointer[standing]
}

// standing is a snapshot in use, and how far it can be relied on. It never
// changes, but for what its watch sees.
type standing struct {
	snapshot *Snapshot
	// covered says that, when the overlay's epoch was the one that stands here,
	// the overlay knew of every change since the snapshot's position.
	covered bool
	epoch   int64
	watch   *watch
	since   time.Time // when it was taken into use
}

// NewLive makes a Live without a snapshot, beside the overlay that has what
// changed since. rejected is told of every check that was rejected because of a
// hit; it must be quick.
func NewLive(overlay *Overlay, rejected func(sendgate.UserID, sendgate.Setting)) *Live {
	return &Live{overlay: overlay, rejected: rejected}
}

// Look asks the snapshot about a user's holds and one setting.
func (l *Live) Look(user sendgate.UserID, setting sendgate.Setting) (a sendgate.FilterAnswer) {
	s := l.standing.Load()
	if s == nil {
		return a
	}
	a = s.snapshot.look(user, setting)
	a.Loaded, a.Current = true, l.current(s)
	return a
}

// LookHard asks the snapshot about a user's hard holds.
func (l *Live) LookHard(user sendgate.UserID) (a sendgate.FilterAnswer) {
	s := l.standing.Load()
	if s == nil {
		return a
	}
	return sendgate.FilterAnswer{Loaded: true, Current: l.current(s), Hold: s.snapshot.lookHard(user)}
}

// Rejected passes on that a check was rejected because of a hit.
func (l *Live) Rejected(user sendgate.UserID, setting sendgate.Setting) { l.rejected(user, setting) }

// Snapshot is the snapshot in use, or nil.
func (l *Live) Snapshot() *Snapshot {
	if s := l.standing.Load(); s != nil {
		return s.snapshot
	}
	return nil
}

// Age is how long ago the snapshot in use was built, by the builder's clock, and
// not less than it has been in use: that clock may be ahead. It is 0 if there is
// none.
func (l *Live) Age(now time.Time) time.Duration {
	s := l.standing.Load()
	if s == nil {
		return 0
	}
	return max(now.Sub(s.snapshot.header.BuiltAt), now.Sub(s.since))
}

// Current tells whether there is a snapshot, and the overlay knows of every
// change since: otherwise what the snapshot rejects has to be verified.
func (l *Live) Current() bool {
	s := l.standing.Load()
	return s != nil && l.current(s)
}

func (l *Live) current(s *standing) bool {
	return s.covered && !s.watch.lost.Load() && l.overlay.Live() && l.overlay.Epoch() == s.epoch
}

// watch notices when the overlay drops a change that is newer than a position.
type watch struct {
	position sendgate.Position
	lost     atomic.Bool
}
