package protocol

// How much there is of everything, at the most. A Config uses less of it.
const (
	gates      = 2
	maxChanges = 3
	maxChecks  = 2
	maxEntries = 30
)

// state is all that there is at one moment, of one user in one partition. It is
// made of bytes only, so that it is its own key in the set of what was visited.
//
// Sets of revisions are bits: revision r is 1<<r.
type state struct {
	store   store
	redis   redis
	copied  replica
	builder builder
	// snapshots are what was published, by number from 1, so far.
	snapshots [2]snapshot
	published uint8
	gates     [gates]gateState
	writers   [maxChanges]writer
	checks    [maxChecks]check
	left      Budget

	// cleared is the newest revision that is not pending any more, as only
	// somebody who watches everything can know.
	cleared uint8
}

// store is the user's record, and what the audit log has of the user.
type store struct{ revision, pending, logged uint8 }

// snapshot is what a filter knows: the record as the scan has read it, and
// where the mark stands.
type snapshot struct {
	revision uint8
	mark     id
}

// builder is one rebuild.
type builder struct {
	phase    uint8
	snapshot snapshot
}

// gate is one gate: what it knows in memory, and what it is doing.
type gateState struct {
	up, ready bool // ready from when everything pending has been learned

	// The follower. read says that it has a cursor, which is 0 if the stream was
	// empty when the one before was lost; away that the stream has not been read
	// to its end since that was lost.
	subscribed, live, wasLive, read, away bool
	cursor                                id
	coming                                message // in the connection

	overlay known
	// The filter in use, 0 if there is none. covered says that the overlay knew
	// of every change since its mark, and there was no gap since.
	filter  uint8
	covered bool

	keeper keeper
	sweep  sweep
	seen   sighting

	// floor is the oldest revision that a check may be answered by.
	floor uint8
}

// known is what an overlay knows of the user. Instead of an epoch it has
// whether that is the current one: nothing compares epochs in another way.
type known struct {
	there, current bool
	heard          bool // by the follower, in the current epoch
	replayed       bool // by the replay under way, or one that failed
	revision       uint8
	at             id    // where it stands in the stream, if that is known
	since          clock // it was learned; 10 minutes are ripe
}

// keeper puts a snapshot into use.
type keeper struct {
	phase     uint8
	candidate uint8
	current   bool // the epoch that was read at the beginning is
	at        id   // the entry that the replay has reached
	trims     bool // what the overlay knew when the replay began is known for long enough
}

// sweep is one look at what is pending.
type sweep struct {
	phase   uint8
	current bool // the epoch that was read before the store is
	reading reading
	listed  uint8 // the record's revision in the index
	upTo    uint8 // may be cleared, 0 if none
}

// reading is a record as it was read, or written, and not announced yet.
type reading struct {
	revision, pending uint8
	// held says that it may be announced yet, stale that Redis would refuse it.
	held, stale bool
}

// sighting is what a sweeper has seen since the last gap.
type sighting struct {
	through, ripens uint8
	since           clock // ripens was seen through; 30 s are ripe
	read            bool  // the stream, since that was ripe
}

// clock is how long ago something was. There is no time in the model but for
// what it brings about.
type clock struct {
	stage uint8
	// before are the readings that were held at that moment.
	before uint8
}

const (
	justNow = iota
	aged    // by more than 10 s: Redis refuses what was read before
	ripe    // by so much more that what Redis had when it was aged is replicated
	untold  // Redis has lost it meanwhile, and no sweep has announced it again
)

// writer is one change on its way.
type writer struct {
	phase   uint8
	gate    uint8
	reading reading
}

// check is a check that has missed the record in the cache.
type check struct {
	phase    uint8
	gate     uint8
	atLeast  uint8 // what its gate knew of
	floor    uint8 // of the gate when the check began
	revision uint8 // that was read from the store
	mayFill  bool
}

// Budget is how often something may happen in one run.
type Budget struct {
	Changes, Sweeps, Checks, Builds, Swaps, Evictions, Crashes, Failovers, Losses, Resets uint8
}

func newest(set uint8) (revision uint8) {
	for ; set > 1; set >>= 1 {
		revision++
	}
	return revision
}

// upTo is the set of all revisions up to one.
func upTo(revision uint8) uint8 { return 1<<(revision+1) - 1 }
