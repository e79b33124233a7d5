package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// errSilent is the end of a subscription that gives no sign of life.
var errSilent = errors.New("no sign of life")

// subscription is one subscription to what is announced. It ends with its
// first error.
type subscription struct {
	sub      *redis.PubSub
	received chan any
	failed   chan error
}

// subscribe begins a subscription. The reading has no time limit: one that
// struck in the middle of a message would leave the rest of it in the
// connection, to be taken for something else. That the other end is there is
// asked for beside it.
func subscribe(ctx context.Context, client redis.UniversalClient, channel string) *subscription {
	s := &subscription{sub: client.Subscribe(ctx, channel), received: make(chan any), failed: make(chan error, 1)}
	go s.read(ctx)
	return s
}

func (s *subscription) read(ctx context.Context) {
	defer close(s.received)
	for {
		m, err := s.sub.ReceiveTimeout(ctx, 0)
		if err != nil {
			s.failed <- err
			return
		}
		select {
		case s.received <- m:
		case <-ctx.Done():
			return
		}
	}
}

// next waits for what comes next, until a check is due: then it returns nil.
// In a silence it asks for a sign of life, and fails without one.
func (s *subscription) next(ctx context.Context, due <-chan time.Time) (any, error) {
	silence := time.NewTimer(quietFor)
	defer silence.Stop()
	asked := false
	for {
		select {
		case m, ok := <-s.received:
			if !ok {
				return nil, s.end(ctx)
			}
			if _, pong := m.(*redis.Pong); !pong {
				return m, nil
			}
			asked = false
			silence.Reset(quietFor)
		case <-due:
			return nil, nil
		case <-silence.C:
			if asked {
				return nil, errSilent
			}
			asked = true
			if err := s.sub.Ping(ctx); err != nil {
				return nil, fmt.Errorf("ask for a sign of life: %w", err)
			}
			silence.Reset(answerWithin)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *subscription) end(ctx context.Context) error {
	select {
	case err := <-s.failed:
		return err
	default:
		return ctx.Err()
	}
}

// close ends the subscription and waits until nothing reads from it.
func (s *subscription) close() {
	_ = s.sub.Close()
	for range s.received { // what had been read is in the stream
		continue
	}
}
