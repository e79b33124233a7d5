package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	listLimit  = 10 * time.Second // of finding out what is published
	fetchLimit = 15 * time.Minute // of fetching one snapshot
	stallLimit = 30 * time.Second // of not a byte of it coming
)

// Source is where snapshots are published. Package bloom/archive has one.
type Source interface {
	// Published lists what is there, the newest first.
	Published(ctx context.Context) ([]Published, error)
	// Fetch writes the snapshot of a generation.
	Fetch(ctx context.Context, generation int64, w io.Writer) error
}

// Published is a snapshot that is there to be fetched. Tag tells two contents
// of one generation apart.
type Published struct {
	Generation int64
	Tag        string
}

// setback is why a published snapshot, of some content, was not loaded.
type setback struct {
	tag      string
	err      error
	refused  bool     // it is not worth being fetched again
	patience patience // otherwise
}

// loaded is what came of fetching a snapshot.
type loaded struct {
	of       Published
	snapshot *Snapshot
	err      error
}

// find looks for the newest snapshot that is newer than the one at hand, and
// begins to fetch it. What was refused is passed over, and what could not be
// fetched is tried again more and more rarely. The problem is that of the
// newest.
func (k *Keeper) find(ctx context.Context) (problem error) {
	limited, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	published, err := k.o.Source.Published(limited)
	if err != nil {
		return fmt.Errorf("find out what is published: %w", err)
	}
	k.forget(published)
	at := k.atHand()
	for i, p := range published {
		switch before := k.setbacks[p.Generation]; {
		case p.Generation == at || p.Generation < at && i > 0:
			return problem
		case p.Generation < at:
			return k.setBack(p, refuse("it is the newest that is published, and older than %d, which is in use", at))
		case before != nil && before.tag == p.Tag && (before.refused || !before.patience.over()):
			problem = errors.Join(problem, before.err)
		default:
			k.fetch(ctx, p)
			if before != nil { // until it is known to have gone better
				problem = errors.Join(problem, before.err)
			}
			return problem
		}
	}
	return problem
}

// atHand is the newest generation that was loaded.
func (k *Keeper) atHand() int64 {
	at := k.generation()
	if k.candidate != nil {
		at = max(at, k.candidate.header.Generation)
	}
	return at
}

// fetch begins to load a snapshot beside everything else, unless one is being
// loaded.
func (k *Keeper) fetch(ctx context.Context, p Published) {
	if k.fetching {
		return
	}
	k.fetching = true
	go func() {
		s, err := k.load(ctx, p)
		k.loaded <- loaded{p, s, err} // has room for it
	}()
}

func (k *Keeper) load(ctx context.Context, p Published) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	s, err := Load(k.o.CacheDir, func(w io.Writer) error {
		ctx, stall := context.WithCancelCause(ctx)
		defer stall(nil)
		timer := time.AfterFunc(stallLimit, func() { stall(fmt.Errorf("nothing came for %v", stallLimit)) })
		defer timer.Stop()
		err := k.o.Source.Fetch(ctx, p.Generation, &watched{w, timer})
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	})
	if err == nil {
		err = s.header.Fits(k.o.Namespace, k.o.Partitions)
	}
	if rate := k.o.MaxFalsePositive; err == nil && s.header.FalsePositiveRate() > rate {
		err = refuse("it rejects %.2g of the checks by mistake, and at most %g are allowed here", s.header.FalsePositiveRate(), rate)
	}
	if err == nil && s.header.Generation != p.Generation {
		err = refuse("it is generation %d inside", s.header.Generation)
	}
	return s, err
}

// watched puts off a timer with everything that is written.
type watched struct {
	w     io.Writer
	timer *time.Timer
}

func (w *watched) Write(data []byte) (int, error) {
	w.timer.Reset(stallLimit)
	return w.w.Write(data)
}

// take takes what was loaded.
func (k *Keeper) take(l loaded) {
	k.fetching = false
	switch {
	case l.err != nil:
		_ = k.setBack(l.of, l.err) // the next look finds it
	case l.of.Generation > k.atHand():
		delete(k.setbacks, l.of.Generation)
		k.candidate = l.snapshot
		k.patience = patience{}
	}
}

// setBack remembers why a snapshot was not loaded. A refusal is counted once, a
// failure every time.
func (k *Keeper) setBack(p Published, err error) error {
	before := k.setbacks[p.Generation]
	if before == nil || before.tag != p.Tag {
		before = &setback{tag: p.Tag}
		k.setbacks[p.Generation] = before
	}
	again := before.refused
	before.refused = errors.Is(err, ErrRefused)
	before.err = fmt.Errorf("generation %d: %w", p.Generation, err)
	switch {
	case !before.refused:
		before.patience.lose()
		k.o.Loaded(LoadFailed)
	case !again:
		k.o.Loaded(LoadRefused)
	}
	return before.err
}

// forget drops what was set back and is not there any more.
func (k *Keeper) forget(published []Published) {
	for generation := range k.setbacks {
		if !slices.ContainsFunc(published, func(p Published) bool { return p.Generation == generation }) {
			delete(k.setbacks, generation)
		}
	}
}
