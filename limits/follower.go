package limits

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A change is in force everywhere after two looks, the first of which may have
// begun too early, and the pause between them: within 5 s.
const (
	lookEvery = time.Second             // give or take a tenth, so that gates do not keep step
	lookLimit = 1900 * time.Millisecond // of one look, with all that it reads
	allEvery  = 30                      // looks after which all documents are read
)

// FollowerOptions are what a Follower is made of. All are required.
type FollowerOptions struct {
	Documents Documents
	Table     *Table
	Log       *slog.Logger
	Now       func() time.Time
}

// Follower keeps a table up to date with the store. It is safe for concurrent
// use.
type Follower struct {
	o FollowerOptions

	mu       sync.Mutex
	lookedAt time.Time // when the last look that succeeded began
	fault    bool      // the last one did not
}

// NewFollower makes a Follower.
func NewFollower(o FollowerOptions) *Follower { return &Follower{o: o, lookedAt: o.Now()} }

// Age is how long ago the last look began that succeeded, or, if none has, for
// how long there has been a follower.
func (f *Follower) Age() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.o.Now().Sub(f.lookedAt)
}

// Run looks once a second until the context ends. While the store is down the
// table stays as it is.
func (f *Follower) Run(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for left := 0; ; left-- {
		pause.Reset(time.Duration(float64(lookEvery) * (0.9 + rand.Float64()/5)))
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		if left > 0 {
			_ = f.look(ctx, false) // which says so itself
		} else if f.look(ctx, true) == nil {
			left = allEvery
		}
	}
}

// Look reads all documents, and takes into the table those that it could read.
// It ends within two seconds.
func (f *Follower) Look(ctx context.Context) error { return f.look(ctx, true) }

// look reads all documents, or those alone that have moved.
func (f *Follower) look(ctx context.Context, all bool) error {
	began := f.o.Now()
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	err := f.read(limited, all)
	if err != nil && ctx.Err() != nil {
		return err // nobody wants to know any more
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && began.After(f.lookedAt) {
		f.lookedAt = began
	}
	switch {
	case err != nil && !f.fault:
		f.o.Log.Warn("limits of single values cannot be read; those that are known stay in force", "error", err)
	case err == nil && f.fault:
		f.o.Log.Info("limits of single values can be read again")
	}
	f.fault = err != nil
	return err
}

func (f *Follower) read(ctx context.Context, all bool) error {
	d, err := f.o.Documents.ReadDocument(ctx, indexName)
	if err != nil {
		return err
	}
	x, err := decodeIndex(d)
	if err != nil {
		return err
	}
	var reads errgroup.Group
	for i := range Shards {
		if all || x.Revisions[i] > f.o.Table.revision(i) {
			reads.Go(func() error { return f.readShard(ctx, i) })
		}
	}
	return reads.Wait()
}

// readShard takes a document into the table if it is newer.
func (f *Follower) readShard(ctx context.Context, i int) error {
	d, err := f.o.Documents.ReadDocument(ctx, shardName(i))
	if err != nil || d.Revision <= f.o.Table.revision(i) {
		return err
	}
	s, err := decodeShard(i, d)
	if err != nil {
		return err
	}
	f.o.Table.put(i, s)
	return nil
}
