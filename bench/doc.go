// Package bench puts load on a gate and compares it with what stands under it:
// a plain Bloom filter, a bare HTTP handler, and Redis asked by its own
// benchmark. `make bench` and `make bench-full` run it; without their flag its
// tests are those of its own arithmetic.
//
// It starts what it needs as processes of their own, a real `gate serve`, a real
// Redis and a DynamoDB engine, and is itself the one that asks. All are on one
// machine, so that every figure worth keeping is a ratio of two that were taken
// in turns, in one run. No figure fails anything: a table says what was aimed at
// and what came of it.
//
// It is a module of its own, so that load generators and plots are no
// dependencies of the product.
package bench
