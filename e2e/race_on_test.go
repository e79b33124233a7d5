//go:build race

package e2e_test

const (
	// part is how many times less of everything there is: the race detector
	// makes all of it slow.
	part = 10
	// holdWithin is how soon a hold is in force at every gate. Programs that
	// are watched are not held to it.
	holdWithin = optOutWithin
)
