// Package guard stands in front of one dependency, such as a Redis or a store:
// it gives every call a time limit and one attempt, bounds how many are under
// way, and stops asking for a while once the dependency has failed repeatedly.
package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Failures in a row that open the breaker, and how long it then stays open
// before one call is let through as a probe.
const (
	tripAfter = 10
	openFor   = time.Second
)

// ErrBusy is the error of a call for which there was no place in time.
var ErrBusy = errors.New("too many calls under way")

// errLimit is why a context ended whose time limit is the guard's.
var errLimit = errors.New("the time limit of the guard")

// Options describe a Guard. Name, Limit and InFlight are required.
type Options struct {
	Name     string        // of the dependency, in errors
	Limit    time.Duration // of one call, waiting for a place included
	InFlight int           // calls at most under way at once
	// Answered tells of an error whether the dependency gave it itself, which
	// shows that it is alive; such an error does not count against it. Nil
	// means that every error counts.
	Answered func(error) bool
	// Elsewhere tells of an error that another call has failed by the same: it is
	// counted there. Nil means that none is.
	Elsewhere func(error) bool
	// Changed is told when the breaker opens, and when it closes after a probe
	// has worked; probes that fail in between are not news. It must not call
	// the guard. It may be nil.
	Changed func(name string, open bool)
}

// Guard is safe for concurrent use.
type Guard struct {
	name    string
	limit   time.Duration
	places  chan struct{}
	breaker *gobreaker.CircuitBreaker[struct{}]
}

// New makes a Guard.
func New(o Options) *Guard {
	g := &Guard{name: o.Name, limit: o.Limit, places: make(chan struct{}, o.InFlight)}
	g.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        o.Name,
		MaxRequests: 1,
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsSuccessful: func(err error) bool {
			return err == nil || (o.Answered != nil && o.Answered(err))
		},
		// Who gave up waiting says nothing of the dependency, and neither does
		// the lack of a place.
		IsExcluded: func(err error) bool {
			return errors.As(err, new(gaveUpError)) || errors.Is(err, ErrBusy) || (o.Elsewhere != nil && o.Elsewhere(err))
		},
		OnStateChange: func(name string, from, to gobreaker.State) {
			opened, closed := from == gobreaker.StateClosed, to == gobreaker.StateClosed
			if o.Changed != nil && (opened || closed) {
				o.Changed(name, opened)
			}
		},
	})
	return g
}

// gaveUpError wraps the error of a call whose caller would not wait for it.
type gaveUpError struct{ error }

func (g gaveUpError) Unwrap() error { return g.error }

// Do makes one call. fn must return when its context ends. The error names the
// dependency; behind an open breaker it is gobreaker.ErrOpenState.
//
// A failed call counts against the dependency if that had its time. It does
// not if the caller went away first, or came with a deadline that left it much
// less than the limit.
func (g *Guard) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return g.Within(ctx, g.limit, fn)
}

// Within is Do with a time limit of its own, for a call that is more work than
// others.
func (g *Guard) Within(ctx context.Context, limit time.Duration, fn func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	_, err := g.breaker.Execute(func() (struct{}, error) { return struct{}{}, g.call(ctx, limit, fn) })
	switch {
	case errors.Is(err, gobreaker.ErrTooManyRequests):
		// A probe is under way, which is no excess of requests.
		return fmt.Errorf("%s: %w", g.name, gobreaker.ErrOpenState)
	case err != nil:
		return fmt.Errorf("%s: %w", g.name, err)
	}
	return nil
}

func (g *Guard) call(ctx context.Context, limit time.Duration, fn func(ctx context.Context) error) error {
	deadline, has := ctx.Deadline()
	hurried := has && time.Until(deadline) < limit*3/4
	limited, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	select {
	case g.places <- struct{}{}:
		defer func() { <-g.places }()
	case <-limited.Done():
		if errors.Is(context.Cause(limited), errLimit) {
			return ErrBusy
		}
		return gaveUpError{ctx.Err()}
	}
	err := fn(limited)
	if err == nil || errors.Is(context.Cause(limited), errLimit) {
		return err
	}
	// A deadline may strike in the network before the context knows of it.
	var timeout interface{ Timeout() bool }
	struck := ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout()
	if errors.Is(ctx.Err(), context.Canceled) || hurried && struck {
		return gaveUpError{err}
	}
	return err
}

// Open tells whether the dependency has failed repeatedly and has not been seen
// to work since: calls fail at once, but for a probe.
func (g *Guard) Open() bool { return g.breaker.State() != gobreaker.StateClosed }

// Name is the dependency's name.
func (g *Guard) Name() string { return g.name }
