package sendgate

import (
	"slices"
	"time"

	"github.com/sendgate/sendgate/quiet"
)

// CapKind is how a cap counts.
type CapKind uint8

// The kinds.
const (
	CapRolling  CapKind = iota // an exact log: an entry exactly one window old has left
	CapBuckets                 // so many parts of a window, of constant size; never more than the limit, and full up to one part longer
	CapCalendar                // a day, ISO week or month in the user's zone
)

// String is the kind's name in the catalog.
func (k CapKind) String() string { return [...]string{"rolling", "buckets", "calendar"}[k] }

// The bounds of a cap.
const (
	MinCapWindow = time.Second
	MaxCapWindow = 31 * 24 * time.Hour
	MaxCapLimit  = 10_000 // an exact log is kept, so a limit is a bound of memory
	MaxBuckets   = 168
	MaxRemember  = 31 * 24 * time.Hour
	MinHold      = time.Second
	MaxHold      = 24 * time.Hour
)

// What is used where the catalog does not say.
const (
	DefaultRemember = 48 * time.Hour
	DefaultHold     = 2 * time.Minute
	dayBuckets      = 24 // of a window of a day or less
	weekBuckets     = 28 // of a longer one
)

// Cap is one frequency cap: at most Limit notifications per window, per subject
// and per value of the fields in By. Two caps of the same kind, subject, fields
// and window count in the same place, whatever their limits.
type Cap struct {
	Kind     CapKind
	Subject  Field         // whose notifications are counted; empty is the user
	By       []Field       // as the operator wrote them; their order means nothing
	Window   time.Duration // of CapRolling and CapBuckets
	Buckets  int           // that the window of CapBuckets is cut into
	Period   quiet.Period  // of CapCalendar
	Remember time.Duration // how long CapBuckets and CapCalendar know a notification id
	Limit    int           // 0 is "never"

	// The last Kept slots are for checks of at least the priority KeptFor.
	Kept    int
	KeptFor Priority

	// OnUnverifiable is what happens where this cap cannot be judged.
	OnUnverifiable UnverifiablePolicy
}

// Span is the cap's window as it is written: `24h`, or `day` of a calendar.
func (c *Cap) Span() string {
	if c.Kind == CapCalendar {
		return c.Period.String()
	}
	return Duration(c.Window).String()
}

// Room is how many notifications of a priority the cap lets through.
func (c *Cap) Room(p Priority) int {
	if p >= c.KeptFor {
		return c.Limit
	}
	return max(0, c.Limit-c.Kept)
}

// sameCounter tells whether two caps count in the same place.
func (c *Cap) sameCounter(o *Cap) bool {
	return c.Kind == o.Kind && c.sameSpan(o) && c.Buckets == o.Buckets && c.sameFields(o.Subject, o.By)
}

func (c *Cap) sameSpan(o *Cap) bool { return c.Window == o.Window && c.Period == o.Period }

func (c *Cap) sameFields(subject Field, by []Field) bool {
	return c.Subject == subject && len(c.By) == len(by) &&
		!slices.ContainsFunc(c.By, func(f Field) bool { return !slices.Contains(by, f) })
}

var byCategory = []Field{fieldCategory}

// CapsFor adds a user's own caps to the category's: the user's limit takes the
// place of another where both count per category over the same window, and the
// user's others are rolling.
func (c *Category) CapsFor(caps []Cap, users []UserCap) []Cap {
	if !c.UserCaps {
		return caps
	}
	for _, u := range users {
		if u.Category == c.Name {
			caps = c.withLimit(caps, byCategory, time.Duration(u.Window), min(u.MaxCount, c.UserCapCeiling))
		}
	}
	return caps
}

// withLimit gives the caps of a user by some fields over a window another limit,
// or adds such a cap if there is none. It leaves the list that it is given alone.
func (c *Category) withLimit(caps []Cap, by []Field, window time.Duration, limit int) []Cap {
	caps = slices.Clone(caps)
	found := false
	for i := range caps {
		if caps[i].Kind != CapCalendar && caps[i].Window == window && caps[i].sameFields("", by) {
			caps[i].Limit, found = limit, true
			caps[i].Kept = max(0, min(caps[i].Kept, limit-1)) // a lower limit is not all kept
		}
	}
	if !found {
		caps = append(caps, Cap{By: by, Window: window, Limit: limit, OnUnverifiable: c.OnUnverifiable})
	}
	return caps
}

// ValueLimit is the limit of a single value of the fields that a cap is keyed
// by, such as one campaign's. Where the catalog has a cap by these fields over
// this window it takes that cap's limit; otherwise it is one more cap.
type ValueLimit struct {
	Window Duration
	Limit  int
}

// ValueLimits knows the limits of single values. It must be quick.
type ValueLimits interface {
	// None tells that no value has any.
	None() bool
	// Of lists the limits of the values of some fields, which are sorted by
	// name. The list is shared and never changed.
	Of(by []Field, values []string) []ValueLimit
}

// noLimits are no limits of single values.
type noLimits struct{}

func (noLimits) None() bool                        { return true }
func (noLimits) Of([]Field, []string) []ValueLimit { return nil }

// BoundCap is a cap, the values that a check has for its fields, in their order,
// and what else there is to know of it to count.
type BoundCap struct {
	Cap
	SubjectID string   // that its notifications are counted for
	Values    []string // of By
	Room      int      // slots that are open to the check, the limit but for those kept
	Zone      *quiet.Zone
}

// CapState is how one cap stood once the check was judged.
type CapState struct {
	Cap       Cap
	SubjectID string    // whose notifications it counts
	Values    []string  // of the cap's fields
	Used      int       // slots taken within the window, this check's own included if it was charged
	ResetsAt  time.Time // when the next slot comes free; zero when none ever will or none is taken
	Full      bool      // this cap had no room for the check
	Unjudged  bool      // it could not be judged: nothing else is known of it
	Zone      string    // by whose clock a calendar is read
	At        time.Time // when it was judged, where that is another clock's time than the check's: of another subject than the user; zero otherwise

	// Where a cap lets the check through only because it holds its
	// notification already, and has less room than is taken by now: when that
	// entry leaves, and when there is room again after that. Zero otherwise;
	// ReturnsAt is zero, too, when there never will be.
	LapsesAt, ReturnsAt time.Time
}
