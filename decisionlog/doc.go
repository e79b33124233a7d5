// Package decisionlog owns the log of charged decisions: what frequency caps
// have allowed and denied, and what became of it. A gate writes one (Log), and
// whoever reads several takes them as one, in the order of time (Read). What
// is made of it is in the packages below.
//
// A log is lines of JSON, one Entry each: see entry.go and docs/decision-log.md.
//
//	entry.go    what a line says, and when it is believed
//	observe.go  what a gate's decisions and outcomes are in a log
//	log.go      the queue between checks and the file, which never makes a check wait
//	writer.go   the one goroutine that writes, and the file
//	lines.go    one log, read line by line: what is torn, and what is bad
//	read.go     several logs as one
package decisionlog
