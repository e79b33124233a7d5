//go:build !race

package bloom_test

// underRace tells whether the race detector watches.
const underRace = false
