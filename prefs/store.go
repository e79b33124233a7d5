package prefs

import (
	"context"
	"errors"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/limits"
)

// ErrConflict is the answer to a conditional write whose condition did not
// hold.
var ErrConflict = errors.New("the record has another revision")

// RecordStore keeps one record a user.
type RecordStore interface {
	// Get reads a record, strongly consistent: it sees every Put that was
	// answered before. A user of whom nothing is stored has a record of
	// revision 0. The caller may change what it gets.
	Get(ctx context.Context, user sendgate.UserID) (*Record, error)
	// GetMany reads many records, each as Get does and with an error of its
	// own, in the order of the users.
	GetMany(ctx context.Context, users []sendgate.UserID) []Found
	// Put stores a record if the stored one has the given revision (0 if there
	// is none), and is ErrConflict otherwise. After any other error it is not
	// known whether the record was stored.
	Put(ctx context.Context, record *Record, ifRevision int64) error
}

// Found is one of many records that were read, or why it could not be.
type Found struct {
	Record *Record
	Err    error
}

// AuditLog keeps every change that was made.
type AuditLog interface {
	// AppendChange stores a change under its user and revision. Doing it again
	// does no harm.
	AppendChange(ctx context.Context, user sendgate.UserID, change Change) error
	// Changes lists a user's changes of a revision greater than after, by
	// rising revision, at most limit of them. It sees every AppendChange that
	// was answered before.
	Changes(ctx context.Context, user sendgate.UserID, after int64, limit int) ([]Change, error)
}

// PendingIndex lists the records that have pending changes. It may lag a
// little behind Put, never for long.
type PendingIndex interface {
	// Pending lists one of PendingShards shards, the longest pending first. It
	// stops at the first error of each and returns it.
	Pending(ctx context.Context, shard int, each func(PendingEntry) error) error
}

// PendingEntry is a record with pending changes.
type PendingEntry struct {
	User     sendgate.UserID
	Since    time.Time // when its oldest pending change was made, to the millisecond
	Revision int64     // of the record; 0 if the index does not say
}

// PendingShards is how many shards the pending index has, so that a store that
// keeps an index partition on one machine spreads it.
const PendingShards = 16

// PendingShard is the shard of the pending index that a user belongs to.
func PendingShard(user sendgate.UserID) int {
	return int(xxhash.Sum64String(string(user)) >> 32 % PendingShards)
}

// Scanner reads the whole table.
type Scanner interface {
	// Scan reads one of several segments, which together are the whole table,
	// consistently: it sees every Put that was answered before it began. It
	// stops at the first error of each and returns it. Segments may be scanned
	// at the same time; a segment may be empty. A record that is written
	// during the scan may come in either state, or more than once.
	Scan(ctx context.Context, segment, segments int, each func(*Record) error) error
}

// Layout is what is fixed when a store is created.
type Layout struct {
	Partitions int `json:"partitions"`
}

// Store is all that a store does. Code that needs less asks for less.
type Store interface {
	RecordStore
	AuditLog
	PendingIndex
	Scanner
	limits.Documents
	// Layout returns the layout that the store was created with; a store that
	// has none yet takes the one given, which must be complete.
	Layout(ctx context.Context, initial Layout) (Layout, error)
	Close() error
}
