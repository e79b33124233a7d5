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
	pubsub   *redis.PubSub
	received chan any
	failed   chan error
	silence  *time.Timer
	asked    bool // for a sign of life
}

// subscribe begins a subscription; its confirmation is the first that next
// returns. What is received is read without a time limit: one that struck in
// the middle of a message would leave the rest of it in the connection, to be
// taken for something else. Whether the other end is there is asked beside it.
func subscribe(ctx context.Context, client redis.UniversalClient, channel string) (*subscription, error) {
	s := &subscription{
		pubsub: client.Subscribe(ctx), received: make(chan any), failed: make(chan error, 1),
		silence: time.NewTimer(answerWithin), asked: true,
	}
	limited, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := s.pubsub.Subscribe(limited, channel); err != nil {
		_ = s.pubsub.Close()
		return nil, err
	}
	go s.read(ctx)
	return s, nil
}

func (s *subscription) read(ctx context.Context) {
	defer close(s.received)
	for {
		m, err := s.pubsub.ReceiveTimeout(ctx, 0)
		if err != nil {
			s.failed <- err
			return
		}
		s.received <- m
	}
}

// next waits for what is received next. It returns nil when a check is due. In
// a silence it asks for a sign of life, and fails without one.
func (s *subscription) next(ctx context.Context, due <-chan time.Time) (any, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case m, ok := <-s.received:
			return s.alive(m, ok)
		case <-due:
			return nil, nil
		case <-s.silence.C:
		}
		if s.asked {
			select {
			case m, ok := <-s.received: // it was there, and nobody had looked
				return s.alive(m, ok)
			default:
				return nil, errSilent
			}
		}
		s.asked = true
		if err := s.pubsub.Ping(ctx); err != nil {
			return nil, fmt.Errorf("ask for a sign of life: %w", err)
		}
		s.silence.Reset(answerWithin)
	}
}

func (s *subscription) alive(m any, ok bool) (any, error) {
	if !ok {
		return nil, <-s.failed
	}
	s.asked = false
	s.silence.Reset(quietFor)
	return m, nil
}

// close ends the subscription and waits until nothing reads from it.
func (s *subscription) close() {
	s.silence.Stop()
	_ = s.pubsub.Close()
	for range s.received { // it stands in the stream
		continue
	}
}
