package bloom

import (
	"container/list"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sendgate/sendgate"
)

// DefaultOverlaySize is how many users an Overlay keeps unless it is told
// otherwise.
const DefaultOverlaySize = 500_000

const shardCount = 64

// Overlay holds the consent of every user who changed lately, as this gate has
// made the change itself or was told of it. It is bounded: beyond its size the
// users who changed longest ago are dropped, and the exact record decides for
// them. It implements sendgate.Overlay and feed.Sink, and is safe for
// concurrent use.
type Overlay struct {
	now     func() time.Time
	seed    maphash.Seed
	shards  [shardCount]shard
	live    atomic.Bool
	wasLive atomic.Bool
	epoch   atomic.Int64 // moves on with every gap
	dropped atomic.Int64
	watches atomic.Pointer[[]*watch] // of the snapshots that rely on it
}

type shard struct {
	mu      sync.RWMutex
	most    int
	entries map[sendgate.UserID]*list.Element
	order   *list.List // of known, the user who changed longest ago in front
}

// known is a consent, the epoch it was learned in, where it stands in the
// change stream, and when it was first known here. One of an epoch before the
// current may be out of date.
type known struct {
	consent sendgate.Consent
	epoch   int64
	at      sendgate.Place
	arrived time.Time
	heard   int64 // the epoch in which it was announced to this gate
	replay  int64 // that it was last learned by; 0 if by none
}

// noEpoch is before every epoch.
const noEpoch = -1

// NewOverlay makes an Overlay that keeps about size users. It is not live
// until SetLive says so.
func NewOverlay(size int) *Overlay {
	o := &Overlay{seed: maphash.MakeSeed(), now: sendgate.SystemClock}
	for i := range o.shards {
		o.shards[i] = shard{most: max(1, size/shardCount), entries: map[sendgate.UserID]*list.Element{}, order: list.New()}
	}
	return o
}

func (o *Overlay) shard(user sendgate.UserID) *shard {
	return &o.shards[maphash.String(o.seed, string(user))%shardCount]
}

// Consent returns what is known of a user. It is exact while the change stream
// is followed and nothing has been missed since it was learned; otherwise its
// revision holds as a lower bound, and the rest is a hint.
func (o *Overlay) Consent(user sendgate.UserID) (c sendgate.Consent, exact, ok bool) {
	// The epoch is read first: a gap that comes in between makes the answer a
	// hint, never the other way round.
	epoch, live := o.epoch.Load(), o.live.Load()
	s := o.shard(user)
	s.mu.RLock()
	defer s.mu.RUnlock()
	element, ok := s.entries[user]
	if !ok {
		return c, false, false
	}
	k := element.Value.(known)
	return k.consent, live && k.epoch >= epoch, true
}

// Apply takes a user's consent as it is told to everybody, unless a newer one
// is known.
func (o *Overlay) Apply(c sendgate.Consent, at sendgate.Place) {
	epoch := o.Epoch()
	o.put(known{consent: c, at: at, epoch: epoch, heard: epoch})
}

// Epoch is a count of the gaps so far.
func (o *Overlay) Epoch() int64 { return o.epoch.Load() }

// ApplySince takes a user's consent that was true at some moment since an
// epoch was read. If there was a gap in between, something newer may have been
// missed in it, so that the consent is a hint.
func (o *Overlay) ApplySince(c sendgate.Consent, epoch int64) {
	o.put(known{consent: c, epoch: epoch, heard: noEpoch})
}

// Known tells up to which revision a user's state has been learned since the
// last gap, -1 if none was, and whether it was announced to this gate since then.
func (o *Overlay) Known(user sendgate.UserID) (revision int64, announced bool) {
	epoch, s := o.epoch.Load(), o.shard(user)
	s.mu.RLock()
	defer s.mu.RUnlock()
	element, ok := s.entries[user]
	if !ok {
		return -1, false
	}
	k := element.Value.(known)
	if k.epoch < epoch {
		return -1, false
	}
	return k.consent.Revision, k.heard >= epoch
}

// replayed takes a consent that a stream holds, in the course of a replay from
// an older position to its end. Before that end it is a hint, since a newer one
// of the same user may follow; confirm makes it exact.
func (o *Overlay) replayed(c sendgate.Consent, at sendgate.Place, replay int64) {
	o.put(known{consent: c, at: at, epoch: noEpoch, heard: noEpoch, replay: replay})
}

// confirm says that a replay has reached the ends of all streams: what it has
// brought, and nothing newer has replaced, was true at some moment since an
// epoch was read.
func (o *Overlay) confirm(replay, epoch int64) {
	o.each(func(k known) bool { return k.replay == replay }, func(_ *shard, e *list.Element) {
		k := e.Value.(known)
		k.epoch, k.replay = max(k.epoch, epoch), 0
		e.Value = k
	})
}

func (o *Overlay) put(k known) {
	c := k.consent
	k.arrived = o.now()
	s := o.shard(c.User)
	s.mu.Lock()
	defer s.mu.Unlock()
	if element, there := s.entries[c.User]; there {
		old := element.Value.(known)
		switch {
		case old.consent.Revision > c.Revision:
			return
		case old.consent.Revision == c.Revision:
			k.epoch, k.heard, k.arrived = max(k.epoch, old.epoch), max(k.heard, old.heard), old.arrived
			if old.at != (sendgate.Place{}) { // it may be announced again, and was made before the first time
				k.at = old.at
			}
		}
		element.Value = k
		s.order.MoveToBack(element)
		return
	}
	if len(s.entries) == s.most {
		longest := s.order.Remove(s.order.Front()).(known)
		delete(s.entries, longest.consent.User)
		o.noteDropped(longest.at)
	}
	s.entries[c.User] = s.order.PushBack(k)
}

// SetLive says whether changes made elsewhere arrive within moments.
func (o *Overlay) SetLive(live bool) {
	o.live.Store(live)
	if live {
		o.wasLive.Store(true)
	}
}

// Live tells what SetLive said last.
func (o *Overlay) Live() bool { return o.live.Load() }

// WasLive tells whether the overlay has ever been live.
func (o *Overlay) WasLive() bool { return o.wasLive.Load() }

// Gap says that a change may have been missed: what was learned before is no
// longer exact.
func (o *Overlay) Gap() { o.epoch.Add(1) }

// noteDropped is told of a user who was dropped because the overlay was full,
// before anybody can miss the user.
func (o *Overlay) noteDropped(at sendgate.Place) {
	o.dropped.Add(1)
	if watches := o.watches.Load(); watches != nil {
		for _, w := range *watches {
			if !w.position.Covers(at) {
				w.lost.Store(true)
			}
		}
	}
}

// watchFor makes the snapshots of these watches those that are told when a
// change that they lack is dropped.
func (o *Overlay) watchFor(watches ...*watch) { o.watches.Store(&watches) }

// trim drops the users whom a snapshot knows as well: those whose change stands
// before its position and has been known here for at least so long.
func (o *Overlay) trim(position sendgate.Position, forLong time.Duration) {
	before := o.now().Add(-forLong)
	covered := func(k known) bool { return k.coveredBy(position, before) }
	o.each(covered, func(s *shard, e *list.Element) {
		s.order.Remove(e)
		delete(s.entries, e.Value.(known).consent.User)
	})
}

// changedAtOnce is how many users are changed under one lock, so that nobody
// waits for all of them.
const changedAtOnce = 64

// each changes the users that are chosen, if they still are when it comes to
// them.
func (o *Overlay) each(chosen func(known) bool, change func(*shard, *list.Element)) {
	for i := range o.shards {
		s := &o.shards[i]
		for users := range slices.Chunk(s.chosen(chosen), changedAtOnce) {
			s.mu.Lock()
			for _, user := range users {
				if e, there := s.entries[user]; there && chosen(e.Value.(known)) {
					change(s, e)
				}
			}
			s.mu.Unlock()
		}
	}
}

func (s *shard) chosen(chosen func(known) bool) (users []sendgate.UserID) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for user, e := range s.entries {
		if chosen(e.Value.(known)) {
			users = append(users, user)
		}
	}
	return users
}

func (k known) coveredBy(position sendgate.Position, before time.Time) bool {
	return position.Covers(k.at) && !k.arrived.After(before)
}

// Len is the number of users known.
func (o *Overlay) Len() (n int) {
	for i := range o.shards {
		s := &o.shards[i]
		s.mu.RLock()
		n += len(s.entries)
		s.mu.RUnlock()
	}
	return n
}

// Dropped is how many users were dropped because the overlay was full.
func (o *Overlay) Dropped() int64 { return o.dropped.Load() }
