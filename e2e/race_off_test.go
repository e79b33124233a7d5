//go:build !race

package e2e_test

import "time"

const (
	// part is how many times less of everything there is.
	part = 1
	// holdWithin is how soon a hold is in force at every gate.
	holdWithin = time.Second
)
