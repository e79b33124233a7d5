package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// refusal is why a snapshot of some content was refused, so that it is not
// fetched again.
type refusal struct {
	tag string
	err error
}

// find loads the newest published snapshot that is newer than the one at hand
// and passes every check. The problem is that of the newest.
func (k *Keeper) find(ctx context.Context) (problem error) {
	limited, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	published, err := k.o.Source.Published(limited)
	if err != nil {
		return fmt.Errorf("find out what is published: %w", err)
	}
	at := k.generation()
	if k.candidate != nil {
		at = max(at, k.candidate.snapshot.header.Generation)
	}
	k.forget(published)
	for i, p := range published {
		switch {
		case p.Generation == at || ctx.Err() != nil || p.Generation < at && i > 0:
			return problem
		case p.Generation < at:
			return k.refuse(p, refuse("it is the newest that is published, and older than %d, which is in use", at))
		}
		s, err := k.load(ctx, p)
		if err == nil {
			k.candidate = &standing{snapshot: s, watch: &watch{position: s.header.Position}}
			k.patience = patience{}
			return problem
		}
		problem = errors.Join(problem, err)
	}
	return problem
}

// load fetches and checks a snapshot, unless it was refused before.
func (k *Keeper) load(ctx context.Context, p Published) (*Snapshot, error) {
	if before, there := k.refused[p.Generation]; there && before.tag == p.Tag {
		return nil, before.err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	s, err := Load(k.o.CacheDir, func(w io.Writer) error { return k.o.Source.Fetch(ctx, p.Generation, w) })
	if err == nil {
		err = s.header.Fits(k.o.Namespace, k.o.Partitions)
	}
	if err == nil && s.header.Generation != p.Generation {
		err = refuse("it is generation %d inside", s.header.Generation)
	}
	switch {
	case errors.Is(err, ErrRefused):
		return nil, k.refuse(p, err)
	case err != nil:
		k.o.Loaded(LoadFailed)
		return nil, fmt.Errorf("generation %d: %w", p.Generation, err)
	}
	return s, nil
}

// refuse remembers why a snapshot was refused, and counts it once.
func (k *Keeper) refuse(p Published, err error) error {
	if before, there := k.refused[p.Generation]; there && before.tag == p.Tag {
		return before.err
	}
	k.o.Loaded(LoadRefused)
	err = fmt.Errorf("generation %d: %w", p.Generation, err)
	k.refused[p.Generation] = refusal{p.Tag, err}
	return err
}

// forget drops what was refused and is not there any more.
func (k *Keeper) forget(published []Published) {
	for generation := range k.refused {
		if !slices.ContainsFunc(published, func(p Published) bool { return p.Generation == generation }) {
			delete(k.refused, generation)
		}
	}
}
