package prefs

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sendgate/sendgate"
)

// Record is what the store keeps for one user: the preferences as of their
// revision, and the changes that have not verifiably reached everyone yet.
// Records are never deleted, so that a revision never starts again.
type Record struct {
	User sendgate.UserID
	sendgate.Preferences
	Pending []Change // by rising revision
}

// Clone copies r, so that an edit of the copy leaves r alone.
func (r *Record) Clone() *Record {
	return &Record{User: r.User, Preferences: *r.Preferences.Clone(), Pending: slices.Clone(r.Pending)}
}

// PendingSince is when the oldest pending change was made; zero if there is
// none.
func (r *Record) PendingSince() time.Time {
	if len(r.Pending) == 0 {
		return time.Time{}
	}
	return r.Pending[0].At
}

// Change is one edit of one record: an entry of the audit log, and of a
// record's pending list until it has got through.
type Change struct {
	ID       string // made once per edit, so that a write whose answer was lost is recognised as one's own
	Revision int64  // that the edit led to
	At       time.Time
	Meta
	What []Diff
}

// Meta says who asked for a change and why, as far as the caller told.
type Meta struct {
	Actor  string // at most MaxMetaBytes
	Reason string // at most MaxMetaBytes
	From   string // the caller's IP address
}

// MaxMetaBytes bounds the actor and the reason of a change.
const MaxMetaBytes = 256

// DiffKind says what kind of thing a Diff is about.
type DiffKind string

// The kinds, with the members that name the thing.
const (
	DiffPreference DiffKind = "preference"    // Topic, Channel
	DiffQuietHours DiffKind = "quiet_hours"   //
	DiffCap        DiffKind = "frequency_cap" // Category, Window
	DiffHold       DiffKind = "hold"          // Source
)

// Diff is one thing that a change touched. Before and After are JSON; nil
// stands for unset.
type Diff struct {
	Kind     DiffKind            `json:"kind"`
	Topic    string              `json:"topic,omitempty"`
	Channel  string              `json:"channel,omitempty"`
	Category string              `json:"category,omitempty"`
	Window   string              `json:"window,omitempty"`
	Source   sendgate.HoldSource `json:"source,omitempty"`
	Before   json.RawMessage     `json:"before,omitzero"`
	After    json.RawMessage     `json:"after,omitzero"`
}
