// Package boltstore keeps preferences in one bbolt file: the store of the
// embedded default, for one process at a time on one machine. It owns the file,
// its form and the one goroutine that writes to it.
//
// # The file
//
// Four buckets; integers are big-endian, and "ordered" is an int64 with its
// sign bit turned over, so that bytes compare as the numbers do.
//
//	meta     "format" → "sendgate-prefs 1"; "layout" → the layout as JSON;
//	         "document ", its name → revision (ordered), body
//	records  slot (2 bytes: the upper bits of the user's hash), user
//	         → revision (ordered), pending (1 byte: 0 or 1), since (ordered
//	         Unix milliseconds), the record as prefs.EncodeRecord writes it
//	pending  shard (1 byte), since (ordered Unix milliseconds), user → nothing
//	changes  user, a zero byte, revision (ordered) → the change as
//	         prefs.EncodeChange writes it
//
// No two legal users share a key or a piece of one: a user is either all that
// is left after a part of fixed length, or ends at the first zero byte, which no
// id contains. The slot spreads users evenly over the bucket, so that a segment
// of a scan is a range of slots. What stands before an encoded record is what a
// conditional write and the index need, so that neither decodes anything.
//
// A file of another format version, of another program, or cut short is refused
// when it is opened, before anything is written to it.
//
// # Writes
//
// A call into bbolt cannot be given up once it waits for the disk. So one
// goroutine, which Close joins, makes all writes, and callers wait for it only
// as long as their context lasts. Whatever has queued up while the disk was busy
// goes into one transaction, each write judged on its own against the state
// that those before it left, and costs one fsync together. Nobody is answered
// before that.
//
// # Reads
//
// A bbolt file cannot reuse pages, nor grow its mapping, under a read that is
// still open. So lists and scans read a chunk at a time, and hand it out when
// their transaction is over: what is called for each entry may take its time,
// and may write to the store.
//
// No error of this package names a user.
package boltstore
