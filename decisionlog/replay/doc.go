// Package replay counts again, offline and exactly, what a decision log says was
// charged, and holds every verdict against it: were notifications allowed beyond
// a limit, and were any denied although there was room? It shares no counting
// with package freqcap: every counter is a list of slots, each with its
// millisecond.
//
//	replay.go    the order of time: entries go in, events come out
//	counter.go   where a cap counts: its slots, and how many count at an instant
//	moment.go    what happened to a counter within one millisecond
//	settle.go    what an outcome does to a counter
//	calendar.go  periods of a user's zone
//	row.go       what is reported of a cap
//	live.go      what counts still, to fill counters with that were lost
package replay
