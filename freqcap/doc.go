// Package freqcap owns frequency caps: how often a subject, such as a user, may
// be notified within a window of time, and the records in Redis that this is
// counted in. It implements [sendgate.Caps].
//
// Which caps apply to a check, and what a full one means for it, is decided by
// the caller. This package is handed caps with the values that they are keyed
// by, and says which had room; and it is told what became of notifications.
// README.md explains the model and what it costs.
//
// The files follow a list of asks on its way:
//
//	limiter.go    Judge: cuts the list into waves and calls of a bounded size
//	candidate.go  an ask, its subjects, and what has to wait for what
//	counter.go    where a cap counts: its name, the same however it was written
//	unit.go       the asks of one subject within a call, as a script is asked
//	call.go       one guarded round trip, and the one reason to send again
//	reply.go      what a script said, believed only if it has the right shape
//	settle.go     reports of outcomes, and the end of what is held for a moment
//	record.go     a record for a person to read
//
// The scripts are put together of parts: record.lua and slots.lua, which every
// one begins with, judge.lua or settle.lua, and write.lua.
package freqcap
