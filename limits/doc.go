// Package limits owns the limits of single values: "campaign c7: 3 a day and 10
// a week", where the catalog has one limit for all campaigns. It sets and lists
// them, keeps them in the store, and has those that a gate obeys in memory.
//
// # In the store
//
// Sixteen documents hold all values that have limits, each those whose key
// hashes to it, and one more has the revision of each of the sixteen. That one
// is small, and is what every gate reads once a second; it reads a document
// anew when that has moved, and all of them every half a minute.
//
// A change writes the value's document and then the revision, each on the
// condition that nobody else has written it since it was read. It is answered
// when both are done. What was cut off in between is finished by the same call
// again, and is found by every gate within half a minute in any case.
//
// # In memory
//
// A [Table] never goes back: a document replaces only an older one. So the gate
// that made a change obeys it at once, whatever it was reading meanwhile. A
// store that is put back to an earlier state is obeyed by gates that start
// after that.
package limits
