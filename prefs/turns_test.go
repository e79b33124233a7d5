package prefs

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// TestNoMoreThanSoManyWait has one user's turn be taken, and others wait for it.
func TestNoMoreThanSoManyWait(t *testing.T) {
	turns := newTurns(3)
	if err := turns.take(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	waited := make(chan error)
	for range 2 {
		go func() { waited <- turns.take(ctx, "u") }()
	}
	for turns.waiting.Load() < 3 {
		runtime.Gosched()
	}
	if err := turns.take(t.Context(), "another"); !errors.Is(err, errTooManyEdits) {
		t.Errorf("one too many: %v", err)
	}
	giveUp()
	for range 2 {
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("who gives up: %v", err)
		}
	}
	if err := turns.take(t.Context(), "another"); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	turns.give("another")
	turns.give("u")
	if n := turns.waiting.Load(); n != 0 {
		t.Errorf("%d wait in the end", n)
	}
}
