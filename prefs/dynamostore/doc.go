// Package dynamostore keeps preferences in DynamoDB: a store,
// for any number of processes at a time. It owns the tables, the form of their
// items, and every call that is made to them.
//
// # The tables
//
// Three tables, whose names begin with a prefix of the operator's:
//
//	PREFIX-records  key: user (S)
//	                revision (N), body (B: the record as prefs.EncodeRecord
//	                writes it); while changes are pending also shard (N) and
//	                since (N: Unix milliseconds of the oldest of them)
//	  index pending key: shard, since; holds nothing but keys
//	PREFIX-changes  key: user (S), revision (N)
//	                body (B: the change as prefs.EncodeChange writes it)
//	PREFIX-meta     key: name (S); its item "layout" has body (B: the layout
//	                as JSON), and each item "document NAME" has revision (N)
//	                and body (B)
//
// A user's record is one item, and so is the list of what is pending on it: one
// conditional write is both an edit and its outbox. The index is sparse, since
// an item without shard and since is not in it, and sharded, so that no one
// partition of it takes all writes. It lags behind the table by a little; every
// other read here is strongly consistent.
//
// The tables are made on request, with the index from the beginning and paid
// by request. Whoever makes them by other means is free in what does not touch
// keys. The process needs leave to DescribeTable, GetItem, BatchGetItem, PutItem,
// Query and Scan, and to CreateTable where it is to make them. No item is ever
// deleted, and there are no batches of writes, no transactions, streams or expiry.
//
// # One attempt
//
// Every call is sent once; only what a batch of reads leaves for later is asked
// for again. The SDK would try three times by itself, and hold up
// a check for longer than it has; who can afford to ask again knows better what
// it asked for. So an error may follow a write that was made, and the next
// write with the same condition is prefs.ErrConflict then: whoever writes reads
// the record and looks for the change in it, as prefs.Service does.
//
// An answer that says nothing at all is an error too, and so is one that does
// not fit its checksum. The SDK takes the first for one without an item, which
// would turn a fault on the way into a user who never opted out, and warns of
// the second.
//
// No error of this package names a user. What the server says is passed on only
// where it speaks of tables, rates and permissions; of a key or an item, which
// its sentences may quote, it is the error's name alone.
package dynamostore
