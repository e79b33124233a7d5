package redistest

import (
	"testing"
	"time"
)

// How long a condition is waited for, and how often it is looked at. The limit
// is for a machine that is busy with other tests; nothing waits it out that is
// going to succeed.
const (
	waitLimit = 30 * time.Second
	waitEvery = 5 * time.Millisecond
)

// Until waits until a condition holds, and fails the test, naming what was
// waited for, if it does not within half a minute.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !poll(holds, nil) {
		t.Fatalf("not within %s: %s", waitLimit, what)
	}
}

// poll tells whether a condition came to hold within the limit and before stop
// was closed.
func poll(holds func() bool, stop <-chan struct{}) bool {
	limit := time.NewTimer(waitLimit)
	defer limit.Stop()
	again := time.NewTicker(waitEvery)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-stop:
			return false
		case <-limit.C:
			return false
		}
	}
	return true
}
