// Package chaos holds Sendgate to its promise while things fail: a change that
// was answered with 200 is durable, is obeyed at once by the gate that answered
// it, and within 5 s by every other, or within 5 s of the end of the fault that
// was in the way. It is all tests; `make chaos` runs it.
//
// Gates, builder, Redis and a DynamoDB engine run as processes, with a proxy in
// front of every connection to the engines. Writers change people's minds and
// note in a ledger what was acknowledged, and what was tried without an answer:
// of that either outcome is right until the next change is acknowledged.
// Checkers ask every gate about everybody in the ledger all the while. One fault
// after the other is brought about and ended.
//
// The limit of 5 s is the promise and is held as such; everything else that
// takes time is waited for. The harness is itself tested: programs with a
// fault built in must fail it.
package chaos
