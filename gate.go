package sendgate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Overlay knows, in process, the state of every user who changed lately.
type Overlay interface {
	// Consent returns what is known of a user. exact is false while a gap in
	// the change stream may hide something newer: the revision still holds as
	// a lower bound, the rest is a hint.
	Consent(user UserID) (c Consent, exact, known bool)
}

// Filter knows, in process, what every user had chosen when its snapshot was
// taken. Where the Overlay knows a user, the Overlay alone counts.
type Filter interface {
	// Look asks about a user's holds and one setting.
	Look(user UserID, s Setting) FilterAnswer
	// LookHard asks about a user's hard holds alone. Of the answer, Loaded,
	// Current and Hold are set.
	LookHard(user UserID) FilterAnswer
	// Rejected is told of every check that was rejected because of a hit.
	Rejected(user UserID, s Setting)
}

// FilterAnswer is what a filter knows. Hold, OptedOut and OptedIn are hits: a
// false one is certain, up to the snapshot, and a true one is so but for the
// filter's false-positive rate.
type FilterAnswer struct {
	Loaded  bool // there is a snapshot; without one the rest says nothing
	Current bool // nothing that was announced since the snapshot can have been missed

	Hold          bool // a hold stands, or a hard hold where those were asked about
	OptedOut      bool // the setting is off
	OptInsCovered bool // OptedIn says something of this setting
	OptedIn       bool // the setting is on
}

// noFilter is a filter without a snapshot.
type noFilter struct{}

func (noFilter) Look(UserID, Setting) FilterAnswer { return FilterAnswer{} }
func (noFilter) LookHard(UserID) FilterAnswer      { return FilterAnswer{} }
func (noFilter) Rejected(UserID, Setting)          {}

// Records reads users' exact preferences.
type Records interface {
	// Read answers every ask, in order. It returns within its own time limits
	// and earlier when the context ends.
	Read(ctx context.Context, asks []RecordAsk) []RecordAnswer
}

// RecordAsk asks for one user's preferences.
type RecordAsk struct {
	User    UserID
	AtLeast int64 // the least revision this process knows of; anything older counts as a miss
	// FallBack asks the store when the cache cannot be reached. The store is
	// read on a miss in any case.
	FallBack bool
}

// RecordAnswer is one user's preferences, or why they could not be read.
type RecordAnswer struct {
	Preferences *Preferences // shared and never changed
	CacheDown   bool         // the cache did not answer, whatever came after
	Err         error
}

// Caps judges frequency caps.
type Caps interface {
	// Judge answers every ask, in order; asks of one user are judged in that
	// order too. Either all caps of an ask have room and all are charged,
	// unless it only looks, or none is. If take is more than 0, the asks are of
	// one user, and once so many have been admitted the others only look. Asks of
	// one user presume the same.
	Judge(ctx context.Context, asks []CapAsk, take int) []CapAnswer
	// Settle takes reports of what became of notifications, in order.
	Settle(ctx context.Context, reports []CapReport) []CapReceipt
}

// CapAsk asks for a slot under every one of a check's caps. Without caps it is
// admitted.
type CapAsk struct {
	User           UserID
	NotificationID string // a cap that holds it already lets it through again, uncharged
	Channel        string
	Look           bool          // charges nothing
	Hold           time.Duration // the slots are dropped after that unless delivery is reported; 0: never
	Caps           []BoundCap
	Presumed       string // what the cache holds of the user's record, exactly; empty: anything
}

// CapAnswer is how the caps of one ask stood. Where some could not be judged, Err
// says why: the others are charged if all have room and the OnUnverifiable of
// those lets the check go, and nothing is known to have been charged otherwise.
type CapAnswer struct {
	Admitted bool       // every cap had room
	Passed   bool       // it would have been admitted, and as many as were to be taken had been
	Refuted  bool       // the record is not as presumed: nothing was judged, and nothing is kept of it
	Caps     []CapState // in the order of the ask; none if Err is of all of them
	At       time.Time  // when it was judged, by the clock of the caps; zero if there was nothing to judge
	Err      error
}

// Observer is told what the gate does. It must be quick, safe for concurrent
// use, and keep no pointer that it is given: what it points to is used again.
type Observer interface {
	// Decided is told of every decision except those of Explain.
	Decided(c *Check, d *Decision, mode Mode)
	// Settled is told of every outcome that was settled.
	Settled(s *Settlement)
	// StepTook is told how long a step took for a list of checks.
	StepTook(step Step, checks int, took time.Duration)
	// ZoneFellBack is told that a stored time zone is unknown, and that the
	// catalog's default was used.
	ZoneFellBack()
}

// Options are what a Gate is made of. All but Filter, Memory, Limits, Now and
// CapsBesideRecords are required.
type Options struct {
	Catalog  *Catalog
	Overlay  Overlay
	Filter   Filter // nil: every check that the overlay does not answer reads the record
	Records  Records
	Memory   Memory // of what Records has read; nil: none. Only where Caps can tell what the cache holds
	Caps     Caps
	Limits   ValueLimits // nil: no single value has limits of its own
	Observer Observer
	// CapsBesideRecords says that the caps live in the same Redis as the
	// record cache, so that a check which found that one down need not find it
	// out again.
	CapsBesideRecords bool
	// Now is the clock of quiet hours; nil is the machine's.
	Now func() time.Time
}

// Gate decides. It holds no state of its own beyond the catalog in force and
// is safe for concurrent use.
type Gate struct {
	catalog           atomic.Pointer[Catalog]
	overlay           Overlay
	filter            Filter
	records           Records
	memory            Memory
	caps              Caps
	limits            ValueLimits
	observer          Observer
	capsBesideRecords bool
	now               func() time.Time
	rounds            sync.Pool // of *round, to be used again
}

// NewGate makes a Gate.
func NewGate(o Options) *Gate {
	g := &Gate{
		overlay: o.Overlay, filter: o.Filter, records: o.Records, caps: o.Caps, observer: o.Observer,
		limits: o.Limits, capsBesideRecords: o.CapsBesideRecords, now: o.Now,
	}
	if g.memory = o.Memory; g.memory == nil {
		g.memory = noMemory{}
	}
	if g.limits == nil {
		g.limits = noLimits{}
	}
	if g.now == nil {
		g.now = SystemClock
	}
	if g.filter == nil {
		g.filter = noFilter{}
	}
	g.catalog.Store(o.Catalog)
	return g
}

// Catalog is the catalog in force.
func (g *Gate) Catalog() *Catalog { return g.catalog.Load() }

// SetCatalog puts another catalog in force. Checks under way end under the one
// they began with.
func (g *Gate) SetCatalog(c *Catalog) { g.catalog.Store(c) }

// Mode says whether caps are charged.
type Mode uint8

// The modes.
const (
	Reserve Mode = iota // an allow takes its slots
	Look                // nothing is charged
)

// Explain answers one check without charging anything, and says what every
// step found that could be evaluated, also those after the one that ended the
// check. A zero at is now; another one moves quiet hours alone.
func (g *Gate) Explain(ctx context.Context, check Check, at time.Time) (Decision, []Finding, error) {
	catalog := g.Catalog()
	if err := check.Validate(catalog); err != nil {
		return Decision{}, nil, err
	}
	if at.IsZero() {
		at = g.now()
	}
	var c checkCase
	c.open(&check, catalog, at)
	c.explain = true
	(&round{Gate: g, catalog: catalog}).run(ctx, []*checkCase{&c})
	return c.decision, c.findings, nil
}
