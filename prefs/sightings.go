package prefs

import (
	"sync"
	"time"

	"github.com/sendgate/sendgate"
)

const (
	// graceFor is how long a change is left to the request that made it.
	graceFor = time.Second
	// pendingFor is how long a change stays pending at the least after it was
	// seen to have got through, by the gate that clears it. If Redis loses its
	// last seconds in a failover, the change is still here to be announced
	// again.
	pendingFor = 30 * time.Second
	// anybodysAfter is for how long a change is left to the gate in whose share it
	// is. After that every gate tries to carry it on: that one may not reach what
	// it takes.
	anybodysAfter = 10 * time.Second
	// maxSightings bounds what is remembered of records with pending changes.
	// What goes beyond is looked at in every sweep, until others are cleared.
	maxSightings = 1_000_000
)

// sightings are what a sweeper has seen of records with pending changes since
// the overlay's last gap: nothing that was seen before one counts, since Redis
// may have lost it too. Gates' clocks may be apart, so that no gate goes by the
// time that another one has put on a change.
type sightings struct {
	mu     sync.Mutex
	epoch  int64
	shards [PendingShards]map[sendgate.UserID]sighting
	length int
}

// sighting is of one record. Revisions are 0 if there is none.
type sighting struct {
	first   time.Time // when it was first seen pending, gap or no gap
	through int64     // the state of this revision was announced
	// ripens is the revision up to which changes can be cleared once since is
	// long enough ago: when that was first seen to have got through.
	ripens int64
	since  time.Time
}

// begin forgets what was seen if there was a gap since.
func (s *sightings) begin(epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch == epoch {
		return
	}
	s.epoch = epoch
	for _, shard := range s.shards {
		for user, seen := range shard {
			shard[user] = sighting{first: seen.first}
		}
	}
}

// see takes what is pending in a shard, and forgets what is not any more.
func (s *sightings) see(shard int, pending []PendingEntry, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.shards[shard]
	s.length -= len(before)
	seen := make(map[sendgate.UserID]sighting, len(pending))
	for _, e := range pending {
		old, ok := before[e.User]
		if !ok {
			old.first = now
		}
		if s.length+len(seen) < maxSightings {
			seen[e.User] = old
		}
	}
	s.length += len(seen)
	s.shards[shard] = seen
}

// of is what was seen of a record, if there was no gap since the epoch began.
func (s *sightings) of(user sendgate.UserID, epoch int64) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != epoch {
		return sighting{}
	}
	return s.shards[PendingShard(user)][user]
}

// noteThrough notes that a user's state of a revision has got through.
func (s *sightings) noteThrough(user sendgate.UserID, revision, epoch int64, now time.Time) {
	s.note(user, epoch, func(seen *sighting) {
		seen.through = max(seen.through, revision)
		if seen.ripens == 0 {
			seen.ripens, seen.since = seen.through, now
		}
	})
}

// noteCleared notes that the changes of a user were cleared up to what was
// ripe. Those that have got through since ripen from now on.
func (s *sightings) noteCleared(user sendgate.UserID, epoch int64, now time.Time) {
	s.note(user, epoch, func(seen *sighting) { seen.ripens, seen.since = seen.through, now })
}

// noteLost notes that Redis does not hold what was seen to have got through.
func (s *sightings) noteLost(user sendgate.UserID, epoch int64) {
	s.note(user, epoch, func(seen *sighting) { *seen = sighting{first: seen.first} })
}

// note changes what was seen of a record that is pending, unless there was a
// gap since.
func (s *sightings) note(user sendgate.UserID, epoch int64, change func(*sighting)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shard := s.shards[PendingShard(user)]
	if seen, ok := shard[user]; ok && epoch == s.epoch {
		change(&seen)
		shard[user] = seen
	}
}

// ripe tells whether changes of a record can be cleared.
func (s sighting) ripe(now time.Time) bool { return s.ripens > 0 && now.Sub(s.since) >= pendingFor }

// overdue tells whether a record should have got through, or should have been
// cleared, long ago.
func (s sighting) overdue(through bool, now time.Time) bool {
	if through {
		return now.Sub(s.since) >= 2*pendingFor
	}
	return !s.first.IsZero() && now.Sub(s.first) >= anybodysAfter
}
