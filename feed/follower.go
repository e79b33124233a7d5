package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
)

const (
	quietFor   = 3 * time.Second // without a message, before the connection is asked for a sign of life
	replyLimit = 2 * time.Second // of one command
)

// Sink is who a Follower hands changes to.
type Sink interface {
	// Apply takes a user's consent. It may come twice and in any order; the
	// one of the highest revision is true.
	Apply(c sendgate.Consent)
	// SetLive says whether, from now on, everything that was announced has
	// been applied within moments.
	SetLive(live bool)
	// Gap says that something that was announced may have been missed for
	// good.
	Gap()
}

// Follower hands every change that any gate announces to its sink.
type Follower struct {
	client redis.UniversalClient
	space  *keyspace.Space
	sink   Sink
	log    *slog.Logger
	lag    func(time.Duration)
	now    func() time.Time

	cursors []entry // by partition; the zero entry is "not read yet"
}

// FollowerOptions are what a Follower is made of. All are required.
type FollowerOptions struct {
	Client redis.UniversalClient
	Space  *keyspace.Space
	Sink   Sink
	Log    *slog.Logger
	Lag    func(time.Duration) // told how long each change took to get here
	Now    func() time.Time
}

// NewFollower makes a Follower. Run starts it.
func NewFollower(o FollowerOptions) *Follower {
	return &Follower{
		client: o.Client, space: o.Space, sink: o.Sink, log: o.Log, lag: o.Lag, now: o.Now,
		cursors: make([]entry, o.Space.Partitions()),
	}
}

// Run follows the stream until the context ends. It must run once.
func (f *Follower) Run(ctx context.Context) {
	pause := &backoff.ExponentialBackOff{InitialInterval: 20 * time.Millisecond, MaxInterval: time.Second, Multiplier: 2, RandomizationFactor: 0.5}
	pause.Reset()
	for ctx.Err() == nil {
		err := f.follow(ctx, pause.Reset)
		f.sink.SetLive(false)
		if ctx.Err() != nil {
			return
		}
		f.log.Warn("the change stream is not being followed; trying again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// follow subscribes, reads what was missed, and follows until something
// fails. What is published while the stream is read waits in the connection.
func (f *Follower) follow(ctx context.Context, live func()) error {
	sub := f.client.Subscribe(ctx, f.space.Channel())
	defer func() { _ = sub.Close() }()
	asked := false // for a sign of life
	for {
		received, err := sub.ReceiveTimeout(ctx, quietFor)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout() && !asked && ctx.Err() == nil:
			asked = true
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return fmt.Errorf("subscription: %w", err)
		}
		asked = false
		switch m := received.(type) {
		case *redis.Subscription:
			if err := f.catchUp(ctx, f.allPartitions()); err != nil {
				return fmt.Errorf("catch up: %w", err)
			}
			f.sink.SetLive(true)
			live()
		case *redis.Message:
			if err := f.hear(ctx, m.Payload); err != nil {
				return err
			}
		}
	}
}

// hear takes one announcement. One that does not follow the cursor means that
// something was missed, which is then read.
func (f *Follower) hear(ctx context.Context, payload string) error {
	a, err := parseAnnouncement(payload, f.space.Partitions())
	if err != nil {
		f.log.Error("an announcement is not understood", "error", err)
		return nil
	}
	cursor := f.cursors[a.partition]
	switch {
	case a.entry.previous == cursor.id:
		f.take(a.partition, a.entry)
	case !after(a.entry.id, cursor.id):
		// Read from the stream already.
	default:
		if err := f.catchUp(ctx, []int{a.partition}); err != nil {
			return fmt.Errorf("catch up: %w", err)
		}
	}
	return nil
}

// take applies an entry and moves the cursor to it.
func (f *Follower) take(partition int, e entry) {
	f.cursors[partition] = e
	consent, at, err := decode(e.text)
	if err != nil {
		f.log.Error("a message is not understood", "entry", e.id, "error", err)
		f.sink.Gap()
		return
	}
	f.sink.Apply(consent)
	f.lag(max(0, f.now().Sub(at)))
}

func (f *Follower) allPartitions() []int {
	all := make([]int, f.space.Partitions())
	for p := range all {
		all[p] = p
	}
	return all
}
