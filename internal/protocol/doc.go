// Package protocol is a model of how one user's change travels, and an explorer
// that goes through everything that may happen to it. It imports nothing of the
// product; what it says about it is true as far as the model is what the code
// does. Its tests explore small worlds whole, and take away one rule of the
// protocol after the other, to see that each is missed.
//
// # What is modelled
//
// One user, one partition, two gates A and B, and a builder. Every step is what
// the product does at once: one command or script of Redis, one call of the
// store, or one act in a gate's memory.
//
//   - writer.go: a conditional write, the gate's own overlay and the answer 200;
//     then the announcement of what was written, at once, late, or never.
//   - redis.go: announce.lua, lease.lua and fill.lua, the stream with ids that
//     tell masters apart, and what a replica has of all that.
//   - follower.go: package feed. A message is heard, lost, or late; the stream is
//     read from the cursor; a cursor that is gone is a gap.
//   - overlay.go: bloom.Overlay. An epoch counts only as being the current one.
//   - sweeper.go: the sweep of package prefs, for one record: list, learn, look,
//     announce, log, clear.
//   - filter.go: mark, scan and publish; replay, confirm, swap and trim.
//   - check.go: a check that misses: lease, read, fill.
//   - faults.go: a replica that is behind takes over, Redis loses everything or
//     evicts the key, a gate dies and starts again. What a dead gate has sent to
//     Redis may arrive yet.
//
// There are no clocks. Anything may take any time, but for two things that the
// code's limits bring about. After 10 s what was read from the store before is
// refused by Redis. After 30 s (of a pending change that was seen through) or 10
// minutes (of an overlay entry, before the replay for a snapshot begins that has
// it trimmed) that is so, and moreover what Redis held after those 10 s is
// replicated, or was lost since; and if that was a pending change, 10 minutes are
// enough for a sweep to have announced it again. That a catch-up
// comes every 4 s, and a sweep every 2 s, is nowhere assumed: a gate must know
// what it has been able to learn by the last one that it made.
//
// # What is promised
//
// promises.go looks at every state. A check that is asked at a gate now, be it
// answered by the overlay, the filter, the cache or the store, is never answered
// by less than the gate's floor: what it has answered with 200 in this life; what
// was pending at the last sweep that learned; what was cleared when it last
// caught up; for a gate that was started, whatever there was before, once it is
// ready. What was cleared is logged, the cache holds nothing older, and neither
// does a gate know less that starts with the newest snapshot and the stream. A
// record in the cache is not older than what was announced since the key was
// last taken away. And from every state, once no more faults come and everybody
// does what they do every few seconds (fair.go), nothing stays pending, all is
// logged, and cache and gates have the newest revision.
//
// # What is left out
//
//   - Which settings a revision changes: any two are taken to differ, in a way
//     that the filter's answer alone is right only for its own.
//   - What a check answers when neither Redis nor the store does.
//   - A store or an index that lags, fails, or answers without having written;
//     two edits that conflict are one after the other.
//   - Several users and partitions, pages, and the bounds of stream and overlay.
//     A stream that is trimmed is one that has lost everything.
//   - A gate that was stopped and goes on, before it has read anything: its floor
//     is what it knew.
//   - Clocks that are apart: ids of a new master are later than those before.
//   - A snapshot that is older than the one in use, damaged, or another
//     builder's; two rebuilds.
//   - Joined reads of the store, and checks that take their looks at overlay and
//     cache at different moments.
//
// # How to read a trace
//
// A trace is one of the shortest ways to a broken promise, a step in a line, with
// the state after it:
//
//	store 2 pending {1 2} | Redis R1 [mark 1] | A 2 filter 0 | B 1? filter 0? away
//
// The store holds revision 2, and changes 1 and 2 are pending. Redis has the
// record of revision 1 in the cache (- is nothing), and in the stream a mark and
// then revision 1. Gate A knows revision 2 by its overlay (- is nothing), exactly,
// and has a filter of revision 0 in use. Of gate B a ? says that the overlay's
// entry is a hint, and that the filter's rejections are verified; it is away: it
// does not follow the stream. Below a line that says so stand the steps of a fair
// run.
package protocol
