// Package storm measures how changes get through: eight gates over one store
// and a real Redis, and as many people as the machine takes who change their
// minds. It is all tests and benchmarks; `go test -run '^$' -bench . ./storm`
// prints the figures.
//
// It knows gates from the outside alone: it makes changes and asks checks over
// HTTP, on 127.0.0.1, and looks at a gate's overlay to see what the gate knows
// without asking anybody. Everything but Redis runs in one process, callers and
// watchers too, so that the figures are of the whole on one machine, and gates
// on machines of their own do better. A CPU profile tells them apart by the
// label "part".
//
// A short storm is an ordinary test, with a Redis that is killed in the middle
// and comes back empty. Its limit is the promise; no other timing decides.
package storm
