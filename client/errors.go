package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/sony/gobreaker/v2"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/guard"
)

// ErrClosed is the error of a call to a client that is closed.
var ErrClosed = errors.New("the client is closed")

// The causes of decisions that the client makes itself, and the errors of
// reports that did not get through.
var (
	ErrUnreachable = errors.New("no gate can be reached")
	ErrTimeout     = errors.New("no gate has answered in time")
	ErrFailing     = errors.New("the gate has failed")                      // with a status of 5xx, or one that no gate gives
	ErrGarbled     = errors.New("the answer is not a gate's")               // cut off, of other checks, or no JSON
	ErrTripped     = errors.New("the gates have failed and are left alone") // for a second after ten failures in a row
	ErrBusy        = errors.New("too many calls wait")
)

// causes are the causes, in the order of what is counted of them.
var causes = [...]error{ErrUnreachable, ErrTimeout, ErrFailing, ErrGarbled, ErrTripped, ErrBusy}

// causeOf names what kept a gate from answering.
func causeOf(err error) error {
	for _, c := range causes {
		if errors.Is(err, c) {
			return err
		}
	}
	var timeout interface{ Timeout() bool }
	kind := ErrUnreachable
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		kind = ErrTripped
	case errors.Is(err, guard.ErrBusy):
		kind = ErrBusy
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		kind = ErrTimeout
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// refusalOf is the refusal in an error, or nil: what was asked is wrong, and the
// gate is well.
func refusalOf(err error) error {
	var many sendgate.Errors
	var one *sendgate.Error
	switch {
	case errors.As(err, &many):
		return many
	case errors.As(err, &one):
		return one
	}
	return nil
}
