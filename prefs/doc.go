// Package prefs owns users' preferences: the record that is stored for each
// user, the changes made to it and how they get through to every gate.
//
// The store is the truth. One conditional write carries a record's new state,
// its revision and the change itself in the record's pending list, so that a
// single write is both the edit and its outbox. [Service] makes edits and
// carries them on; [Sweeper] carries on what was cut off; [Reader] reads
// records for checks, through a cache.
//
// Stores and the cache live in folders below: boltstore, rediscache. The
// conformance suite that every store passes is in storetest.
package prefs
