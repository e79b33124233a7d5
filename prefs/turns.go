package prefs

import (
	"context"
	"hash/maphash"

	"github.com/sendgate/sendgate"
)

// turns lets edits of one user through one at a time, so that a gate does not
// compete with itself for a record. Users share places by hash; the store's
// conditional writes are what makes edits right, across gates too.
type turns struct {
	seed   maphash.Seed
	places [1024]chan struct{}
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.places {
		t.places[i] = make(chan struct{}, 1)
	}
	return t
}

func (t *turns) place(user sendgate.UserID) chan struct{} {
	return t.places[maphash.String(t.seed, string(user))%uint64(len(t.places))]
}

// take waits for a user's turn until the context ends.
func (t *turns) take(ctx context.Context, user sendgate.UserID) error {
	select {
	case t.place(user) <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *turns) give(user sendgate.UserID) { <-t.place(user) }
