package sendgate

import (
	"maps"
	"slices"
	"time"

	"github.com/sendgate/sendgate/quiet"
)

// Setting names what a user can switch: one topic on one channel.
type Setting struct{ Topic, Channel string }

// Settings are a user's stored choices. A setting that is not in the map is
// unset: the catalog's default decides.
type Settings map[Setting]bool

// HoldSource says who placed a hold.
type HoldSource string

// The two sources. A user has at most one hold of each.
const (
	SourceUser     HoldSource = "user"
	SourceOperator HoldSource = "operator"
)

// Hold is one reason for which everything is off for a user. The global flag
// stands while any hold stands.
type Hold struct {
	Source          HoldSource
	Reason          string
	RetainEssential bool // false makes it a hard hold, which stops essential notifications too
	At              time.Time
}

// QuietHours are a user's own: the window may be absent, so that a zone can be
// known before any hours are chosen.
type QuietHours struct {
	Enabled  bool
	Window   *quiet.Window
	Timezone string // IANA name; empty means the catalog's default
}

// UserCap is a cap that a user has set for a category. It is known by category
// and window.
type UserCap struct {
	Category string
	Window   Duration
	MaxCount int // 0 is "never"
}

// Preferences are all that a user has chosen, as of a revision. Revision 0 is
// a user of whom nothing is stored.
type Preferences struct {
	Revision   int64
	Settings   Settings
	QuietHours *QuietHours
	Caps       []UserCap // ordered by category, then window
	Holds      []Hold    // ordered by source
	UpdatedAt  time.Time
}

// Global tells whether any hold stands.
func (p *Preferences) Global() bool { return len(p.Holds) > 0 }

// Hard tells whether a hard hold stands.
func (p *Preferences) Hard() bool {
	return slices.ContainsFunc(p.Holds, func(h Hold) bool { return !h.RetainEssential })
}

// Clone copies p, so that an edit of the copy leaves p alone.
func (p *Preferences) Clone() *Preferences {
	c := *p
	c.Settings = maps.Clone(p.Settings)
	c.Caps = slices.Clone(p.Caps)
	c.Holds = slices.Clone(p.Holds)
	if p.QuietHours != nil {
		q := *p.QuietHours
		if q.Window != nil {
			w := *q.Window
			q.Window = &w
		}
		c.QuietHours = &q
	}
	return &c
}

// Consent is the part of a user's preferences that decides in process: what
// gates tell each other after a change. It is always the whole state at a
// revision, never a difference, so that the newest one alone suffices and the
// order of arrival does not matter.
type Consent struct {
	User     UserID
	Revision int64
	Global   bool // a hold stands
	Hard     bool // a hard hold stands
	Settings Settings
}

// ConsentOf extracts a user's consent. It shares the settings map, which
// nobody may change afterwards.
func ConsentOf(user UserID, p *Preferences) Consent {
	return Consent{User: user, Revision: p.Revision, Global: p.Global(), Hard: p.Hard(), Settings: p.Settings}
}
