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
	told    int64 // this gate knows the state of this revision
	through int64 // it was announced
	// ripens is the revision up to which changes can be cleared once since is
	// long enough ago: when that was first seen to have got through.
	ripens int64
	since  time.Time
}

// begin forgets everything if there was a gap since.
func (s *sightings) begin(epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != epoch {
		s.epoch, s.length = epoch, 0
		s.shards = [PendingShards]map[sendgate.UserID]sighting{}
	}
}

// keep forgets what is not pending any more in a shard.
func (s *sightings) keep(shard int, pending []PendingEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := make(map[sendgate.UserID]sighting, len(pending))
	for _, e := range pending {
		if seen, ok := s.shards[shard][e.User]; ok {
			kept[e.User] = seen
		}
	}
	s.length += len(kept) - len(s.shards[shard])
	s.shards[shard] = kept
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

// noteTold notes that this gate knows a user's state of a revision.
func (s *sightings) noteTold(user sendgate.UserID, revision, epoch int64) {
	s.note(user, epoch, func(seen *sighting) { seen.told = max(seen.told, revision) })
}

// noteThrough notes that a user's state of a revision has got through.
func (s *sightings) noteThrough(user sendgate.UserID, revision, epoch int64, now time.Time) {
	s.note(user, epoch, func(seen *sighting) {
		seen.told, seen.through = max(seen.told, revision), max(seen.through, revision)
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
	s.note(user, epoch, func(seen *sighting) { *seen = sighting{told: seen.told} })
}

// note changes what was seen of a record, unless there was a gap since.
func (s *sightings) note(user sendgate.UserID, epoch int64, change func(*sighting)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shard := PendingShard(user)
	seen, ok := s.shards[shard][user]
	if epoch != s.epoch || !ok && s.length >= maxSightings {
		return
	}
	if s.shards[shard] == nil {
		s.shards[shard] = map[sendgate.UserID]sighting{}
	}
	if !ok {
		s.length++
	}
	change(&seen)
	s.shards[shard][user] = seen
}

// ripe tells whether changes of a record can be cleared.
func (s sighting) ripe(now time.Time) bool { return s.ripens > 0 && now.Sub(s.since) >= pendingFor }
