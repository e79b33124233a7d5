package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

var (
	bucketMeta    = []byte("meta")
	bucketRecords = []byte("records")
	bucketPending = []byte("pending")
	bucketChanges = []byte("changes")

	keyFormat = []byte("format")
	keyLayout = []byte("layout")
)

// Lengths in bytes of what stands in front in keys and values.
const (
	slotBytes    = 2
	shardBytes   = 1
	orderedBytes = 8
	headBytes    = orderedBytes + 1 + orderedBytes
)

// slots is how many slots there are: the finest that segments can be.
const slots = 1 << (8 * slotBytes)

// errCorrupt is the error of a key or value that this package did not write.
// It says which bucket, and never whose entry it was.
func errCorrupt(bucket []byte, why error) error {
	return fmt.Errorf("boltstore: an entry of the bucket %q is damaged: %w", bucket, why)
}

var (
	errKey   = errors.New("its key has another form")
	errHead  = errors.New("its head has another form")
	errForm  = errors.New("its value does not decode") // for a decoder's own, which may quote what it read
	errOther = errors.New("it is stored under another's key")
)

// appendOrdered writes n so that the bytes compare as the numbers do.
func appendOrdered(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)^1<<63)
}

func ordered(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

// recordKey is where a user's record is stored.
func recordKey(user sendgate.UserID) []byte {
	slot := uint16(xxhash.Sum64String(string(user)) >> 48)
	return append(binary.BigEndian.AppendUint16(nil, slot), user...)
}

// segmentStart is the first key of a segment, and segmentStart(segment+1) the
// first one after it. Nil is past all keys.
func segmentStart(segment, segments int) []byte {
	if segment >= segments {
		return nil
	}
	high, low := bits.Mul64(slots, uint64(segment)) // which no number of segments overflows
	slot, _ := bits.Div64(high, low, uint64(segments))
	return binary.BigEndian.AppendUint16(nil, uint16(slot))
}

// head is what stands in front of an encoded record.
type head struct {
	revision int64
	pending  bool
	since    int64 // of the oldest pending change, in Unix milliseconds; 0 if none
}

func headOf(r *prefs.Record) head {
	h := head{revision: r.Revision, pending: len(r.Pending) > 0}
	if since := r.PendingSince(); !since.IsZero() {
		h.since = since.UnixMilli()
	}
	return h
}

// encodeValue is what is stored for a record.
func encodeValue(r *prefs.Record) ([]byte, error) {
	data, err := prefs.EncodeRecord(r)
	if err != nil {
		return nil, err
	}
	if len(data) > prefs.MaxRecordBytes {
		return nil, sendgate.Errorf(sendgate.CodeRecordTooLarge, "", "the record would have %d bytes, and at most %d are stored", len(data), prefs.MaxRecordBytes)
	}
	h := headOf(r)
	value := appendOrdered(make([]byte, 0, headBytes+len(data)), h.revision)
	if h.pending {
		value = append(value, 1)
	} else {
		value = append(value, 0)
	}
	value = appendOrdered(value, h.since)
	return append(value, data...), nil
}

// decodeHead reads the front of a stored value. Nil is a user of whom nothing is
// stored.
func decodeHead(value []byte) (head, error) {
	if value == nil {
		return head{}, nil
	}
	if len(value) < headBytes || value[orderedBytes] > 1 {
		return head{}, errCorrupt(bucketRecords, errHead)
	}
	return head{ordered(value), value[orderedBytes] == 1, ordered(value[orderedBytes+1:])}, nil
}

// decodeValue reads a stored record and makes sure that it is the one that
// belongs under its key. The record shares no memory with value.
func decodeValue(key, value []byte) (*prefs.Record, error) {
	h, err := decodeHead(value)
	if err != nil {
		return nil, err
	}
	r, err := prefs.DecodeRecord(value[headBytes:])
	if err != nil {
		return nil, errCorrupt(bucketRecords, errForm)
	}
	if len(key) < slotBytes || string(key[slotBytes:]) != string(r.User) || headOf(r) != h {
		return nil, errCorrupt(bucketRecords, errOther)
	}
	return r, nil
}

// pendingKey is a record's entry in the pending index.
func pendingKey(user sendgate.UserID, since int64) []byte {
	key := appendOrdered([]byte{byte(prefs.PendingShard(user))}, since)
	return append(key, user...)
}

// pendingValue is what an entry of the index says: the record's revision.
func pendingValue(revision int64) []byte { return appendOrdered(nil, revision) }

// decodePending reads an entry of the index. One without a value is of a version
// that did not write any.
func decodePending(key, value []byte) (prefs.PendingEntry, error) {
	if len(key) <= shardBytes+orderedBytes {
		return prefs.PendingEntry{}, errCorrupt(bucketPending, errKey)
	}
	entry := prefs.PendingEntry{User: sendgate.UserID(key[shardBytes+orderedBytes:])}
	if len(value) == orderedBytes {
		entry.Revision = ordered(value)
	}
	if ms := ordered(key[shardBytes:]); ms != 0 {
		entry.Since = time.UnixMilli(ms).UTC()
	}
	return entry, nil
}

// changePrefix starts the keys of all of a user's changes, and of nobody
// else's.
func changePrefix(user sendgate.UserID) []byte {
	return append([]byte(user), 0)
}

func changeKey(user sendgate.UserID, revision int64) []byte {
	return appendOrdered(changePrefix(user), revision)
}

// firstChangeKey is the first key that a change with a revision greater than
// after can have; ok is false if there is no such revision.
func firstChangeKey(user sendgate.UserID, after int64) (key []byte, ok bool) {
	if after == math.MaxInt64 {
		return nil, false
	}
	return changeKey(user, after+1), true
}
