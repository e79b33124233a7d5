// Package freqcap owns frequency caps: how often a user may be notified within
// a window of time, and the log in Redis that this is counted in. It implements
// [sendgate.Caps].
//
// Which caps apply to a check, and what a full one means for it, is decided by
// the caller. This package is handed caps with the values that they are keyed
// by, and says which had room. All caps of an ask are charged, or none is; a
// notification id is charged once under each cap, however often it is asked
// for. README.md explains the model and what it costs.
//
// The files follow a list of asks on its way:
//
//	limiter.go   Judge: cuts the list into calls of a bounded size
//	unit.go      the asks of one user within a call, as a script is asked
//	counter.go   where a cap counts: its key, the same however it was written
//	call.go      one guarded round trip, and the one reason to send again
//	charge.lua   the decision itself, atomic: rolling windows as exact logs
//	reply.go     what the script said, believed only if it has the right shape
//
// Another kind of window is another kind of counter (counter.go) with its own
// part of the decision (charge.lua); nothing else knows how a cap counts.
// Another thing to do with a slot, such as giving it back, is another script
// beside charge.lua over the same counters.
package freqcap
