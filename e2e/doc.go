// Package e2e holds the whole of Sendgate against the oracle: gates and a
// builder as processes of their own, a real Redis, a DynamoDB engine, and a
// population of a hundred thousand. It is all tests; `make e2e` runs it.
//
// It shows what no package shows by itself: that the filter answers opted-out
// marketing without a command to Redis, that nobody is wronged by it beyond
// the stated rate, that a change is in force at every gate in time, and that a
// rebuild in the middle of it all changes no verdict.
//
// Two things here are promises in seconds, and are held as such: an opt-out is
// in force at another gate within 5 s, a hold within 1 s. Everything else that
// takes time is waited for.
package e2e
