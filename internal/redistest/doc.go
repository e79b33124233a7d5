// Package redistest gives tests a Redis of their own: a real server, a cluster
// of three masters with replicas or without, a master and a replica behind
// Sentinels, or the one that is embedded in `gate dev`.
//
// A real Redis is a requirement, never an option: where redis-server is not
// installed the test fails. Everything that is started ends with its test, and
// on Linux also when the test binary is killed.
package redistest
