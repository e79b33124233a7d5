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

// Options describe a Guard. Name, Limit and InFlight are required.
type Options struct {
	Name     string        // of the dependency, in errors
	Limit    time.Duration // of one call, waiting for a place included
	InFlight int           // calls at most under way at once
	// Answered tells of an error whether the dependency gave it itself, which
	// shows that it is alive; such an error does not count against it. Nil
	// means that every error counts.
	Answered func(error) bool
	// Changed is told when the breaker opens or closes. It may be nil.
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
		IsExcluded: func(err error) bool { return errors.As(err, new(gaveUp)) || errors.Is(err, ErrBusy) },
		OnStateChange: func(name string, _, to gobreaker.State) {
			if o.Changed != nil {
				o.Changed(name, to == gobreaker.StateOpen)
			}
		},
	})
	return g
}

// gaveUp wraps the error of a call whose caller went away.
type gaveUp struct{ error }

func (g gaveUp) Unwrap() error { return g.error }

// Do makes one call. fn must return when its context ends. The error names the
// dependency.
func (g *Guard) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	_, err := g.breaker.Execute(func() (struct{}, error) {
		limited, cancel := context.WithTimeout(ctx, g.limit)
		defer cancel()
		select {
		case g.places <- struct{}{}:
			defer func() { <-g.places }()
		case <-limited.Done():
			return struct{}{}, ErrBusy
		}
		err := fn(limited)
		if err != nil && ctx.Err() != nil {
			err = gaveUp{err}
		}
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	return nil
}

// Open tells whether the breaker is open: calls fail at once.
func (g *Guard) Open() bool { return g.breaker.State() == gobreaker.StateOpen }

// Name is the dependency's name.
func (g *Guard) Name() string { return g.name }
