package prefs

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"

	"github.com/sendgate/sendgate"
)

// turns lets edits of one user through one at a time, so that a gate does not
// compete with itself for a record. Users share places by hash, which also
// bounds how many edits are under way at once, and no more than so many wait;
// the store's conditional writes are what makes edits right, across gates too.
type turns struct {
	seed    maphash.Seed
	places  [1024]chan struct{}
	most    int64 // that wait, or have their turn
	waiting atomic.Int64
}

// mostEdits is how many edits a gate has under way and waiting. In a storm the
// others are refused at once, and may be made again.
const mostEdits = 10_000

var errTooManyEdits = errors.New("too many edits are under way")

func newTurns(most int64) *turns {
	t := &turns{seed: maphash.MakeSeed(), most: most}
	for i := range t.places {
		t.places[i] = make(chan struct{}, 1)
	}
	return t
}

func (t *turns) place(user sendgate.UserID) chan struct{} {
	return t.places[maphash.String(t.seed, string(user))%uint64(len(t.places))]
}

// take waits for a user's turn until the context ends, unless too many wait.
func (t *turns) take(ctx context.Context, user sendgate.UserID) error {
	if t.waiting.Add(1) > t.most {
		t.waiting.Add(-1)
		return errTooManyEdits
	}
	select {
	case t.place(user) <- struct{}{}:
		return nil
	case <-ctx.Done():
		t.waiting.Add(-1)
		return ctx.Err()
	}
}

func (t *turns) give(user sendgate.UserID) {
	<-t.place(user)
	t.waiting.Add(-1)
}
