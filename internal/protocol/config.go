package protocol

// Config says what may happen in the runs that are explored.
type Config struct {
	Budget // how often, in one run
	Defects
	Rules
	// Snapshot has a snapshot of revision 0, and its mark in the stream, be in
	// use at the beginning.
	Snapshot bool
	// At which gates there are writers, sweeps, and so on. CarriesAt are the
	// gates whose sweeps also carry on; the others learn only, as where the
	// shards are another gate's.
	WritersAt, FollowersAt, SweepsAt, CarriesAt, KeepersAt, ChecksAt, ResetsAt, CrashesAt Gates
	// OnlySweepsAnnounce has the limit of every request run out before anything
	// is announced.
	OnlySweepsAnnounce bool
	// Silent are gates that nothing published reaches: they learn what they read.
	Silent Gates
	// Absent are gates that are not there.
	Absent Gates
	// Most bounds the states that are explored, as a safeguard: to reach it is
	// an error.
	Most int
}

// Gates are some of the gates.
type Gates uint8

// The gates.
const (
	A Gates = 1 << iota
	B
	Both = A | B
)

func (m *model) at(some Gates, gate int) bool { return some>>gate&1 == 1 }

// Defects are faults that can be built into the protocol. Each takes away one
// rule.
type Defects struct {
	LeaseIgnored             bool // a check fills the cache whatever holds its key
	ClearedAtOnce            bool // pending changes are cleared as soon as they are announced
	ClearedWithoutAnnouncing bool // what is ripe is cleared without having been announced again
	ClearedWithoutLook       bool // what is ripe is cleared without a look whether Redis holds it
	RipeAtOnce               bool // a change is ripe before Redis must have replicated it
	SightingsThroughGap      bool // what a sweeper has seen counts after a gap, too
	AnnounceWithoutCompare   bool // an older record replaces a newer one
	ReadAgeIgnored           bool // what was read long ago is announced
	OwnOverlayNotTold        bool // a gate does not obey what it has written itself
	ReadyAtOnce              bool // a gate is ready before it knows what is pending
	MarkAfterScan            bool // the builder marks the stream after it has read the store
	SwapBeforeReplay         bool // a snapshot is in use before the overlay knows what changed since
	ReplayExact              bool // what a replay brings is exact before its end
	TrimWithoutPosition      bool // a swap drops changes from the overlay that the snapshot may lack
	TrimAtOnce               bool // a swap drops changes that were learned just now
	GapNotReported           bool // a cursor that is lost is no gap
	ExactThroughGap          bool // overlay entries stay exact through a gap
	CurrentThroughGap        bool // the filter stays current through a gap
	SweepBeforeEpoch         bool // a sweep tells its overlay a state that was read before the epoch
	KnownRevisionIgnored     bool // a cached record counts although the gate knows of a newer one
}

// Rules are what the protocol lacks. Each makes it stand faults that it does not
// stand without.
type Rules struct {
	// ThroughWhenHeard has a change count as got through once the sweeper's own
	// follower has taken it from the stream, since the last gap, and be cleared
	// only by a gate that is live and has read the stream since it was ripe.
	ThroughWhenHeard bool
	// NoCursorIsAGap has a follower that has lost its cursor report another gap
	// whenever it reads before it has a new one, and put a mark into a stream
	// that is empty, as when it begins to follow.
	NoCursorIsAGap bool
}

// model is a configuration with its rules.
type model struct{ Config }

// start is the state that all runs begin from: gates that are ready and follow.
func (m *model) start() state {
	s := state{left: m.Budget}
	m.add(&s, mark)
	if m.Snapshot {
		s.published, s.snapshots[0] = 1, snapshot{mark: s.redis.last()}
	}
	for i := range s.gates {
		g := gateState{up: true, ready: true, subscribed: true, live: true, wasLive: true, read: true, cursor: s.redis.last()}
		if m.Snapshot {
			g.filter, g.covered = 1, true
		}
		if !m.at(m.Absent, i) {
			s.gates[i] = g
		}
	}
	s.replicate()
	if s.left.Failovers == 0 {
		s.copied = replica{}
	}
	return s
}

// emit is told of a step that may be taken, and of the state that it leads to.
type emit func(step, state)

// steps tells of every step that may be taken.
func (m *model) steps(s *state, emit emit) {
	m.write(s, emit)
	m.ask(s, emit)
	m.build(*s, emit)
	for gate := range s.gates {
		m.sweepOn(*s, gate, emit)
		m.keep(*s, gate, emit)
		m.follow(s, gate, emit)
	}
	m.fail(s, emit)
}
