//go:build !race

package oracle_test

// underRace tells whether the race detector watches.
const underRace = false
