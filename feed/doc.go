// Package feed owns the change stream: how one gate's change reaches every
// other.
//
// Every partition of the users has a Redis stream. [Publisher] runs the one
// script that puts a changed record into the cache, appends the user's consent
// to the partition's stream and publishes it. [Follower] subscribes to what is
// published and hands it on; it keeps a cursor for each partition, and reads
// the stream from there whenever it was away, whenever a message names a
// predecessor that it has not seen, and every few seconds in any case: what is
// published may be lost on its way, what is in the stream is not.
//
// A cursor is an entry, its id and its content. If the entry is no longer in
// the stream unchanged, the stream was trimmed, lost, or is another master's,
// and something may have been missed: that is a gap, and the follower says so.
//
// Some entries are marks. They carry no change, and stand in the stream so that
// it can be read from there. A follower leaves one, without content, in a
// stream that is empty. Whoever builds a filter leaves one in every stream
// before it reads the store, all with the same token: together they are a
// [sendgate.Position]. [Replayer] reads every change that stands after a
// position, or finds the position lost, by the same rule as a cursor.
//
// A filter that was published is announced on the channel of the changes too.
// It stands in no stream: who has not heard of it finds it by looking.
package feed
