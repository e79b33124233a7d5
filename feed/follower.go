package feed

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
)

const (
	// How long nothing is received before the other end is asked for a sign of
	// life, and how long that may take. With a page that is being read in
	// between, a connection that is dead is noticed within 5 s.
	quietFor     = time.Second
	answerWithin = 1500 * time.Millisecond
	replyLimit   = 2 * time.Second // of one page of the streams
	// checkEvery is how often the streams are read even though nothing seems
	// to be missing. A message that Redis loses on its way leaves no trace
	// until the next one of its partition, which may be days away.
	checkEvery = 4 * time.Second
)

// sayEvery is after how many failures in a row one is logged again: about once
// in 15 s.
const sayEvery = 30

// Sink is who a Follower hands changes to.
type Sink interface {
	// Apply takes a user's consent, and where it stands in the change stream.
	// It may come twice and in any order; the one of the highest revision is
	// true.
	Apply(c sendgate.Consent, at sendgate.Place)
	// SetLive says whether, from now on, everything that was announced has
	// been applied within moments.
	SetLive(live bool)
	// Gap says that something that was announced may have been missed for
	// good. Where the streams have to be read again for it, SetLive says so
	// before, and when that is done.
	Gap()
}

// Follower hands every change that any gate announces to its sink.
type Follower struct {
	streams  streams
	sink     Sink
	snapshot func(generation int64)
	log      *slog.Logger
	lag      func(time.Duration)
	now      func() time.Time

	failures int      // to follow, in a row
	away     bool     // a gap was found, and the streams have not been read to their ends since
	cursors  []cursor // by partition
}

// FollowerOptions are what a Follower is made of. All but Snapshot are
// required.
type FollowerOptions struct {
	Client redis.UniversalClient
	Space  *keyspace.Space
	Sink   Sink
	// Snapshot is told of the generation, from 1, of every filter that is
	// announced. It must not block: no change is taken meanwhile.
	Snapshot func(generation int64)
	Log      *slog.Logger
	Lag      func(time.Duration) // told how long each change took to get here from when it was announced
	Now      func() time.Time
}

// NewFollower makes a Follower. Run starts it.
func NewFollower(o FollowerOptions) *Follower {
	if o.Snapshot == nil {
		o.Snapshot = func(int64) {}
	}
	return &Follower{
		streams: streams{o.Client, o.Space}, sink: o.Sink, snapshot: o.Snapshot, log: o.Log, lag: o.Lag, now: o.Now,
		cursors: make([]cursor, o.Space.Partitions()),
	}
}

// Run follows the stream until the context ends. It must run once.
func (f *Follower) Run(ctx context.Context) {
	pause := &backoff.ExponentialBackOff{InitialInterval: 20 * time.Millisecond, MaxInterval: 500 * time.Millisecond, Multiplier: 2, RandomizationFactor: 0.5}
	pause.Reset()
	defer f.sink.SetLive(false)
	for ctx.Err() == nil {
		err := f.follow(ctx, pause.Reset)
		if ctx.Err() != nil {
			return
		}
		if f.failures%sayEvery == 0 {
			f.log.Warn("the change stream is not being followed; trying again", "error", err)
		}
		f.failures++
		select {
		case <-ctx.Done():
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// follow subscribes, reads what was missed, and follows until something
// fails. What is published while the stream is read waits in the connection.
func (f *Follower) follow(ctx context.Context, live func()) error {
	sub, err := subscribe(ctx, f.streams.client, f.streams.space.Channel())
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	defer sub.close()
	defer f.sink.SetLive(false) // first of all: closing may take its time
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		received, err := sub.next(ctx, check.C)
		if err != nil {
			return fmt.Errorf("subscription: %w", err)
		}
		switch m := received.(type) {
		case *redis.Message:
			err = f.hear(ctx, m.Payload)
		case *redis.Subscription:
			if err = f.catchUpAll(ctx); err == nil {
				f.sink.SetLive(true)
				live()
				if f.failures > 0 {
					f.log.Info("the change stream is being followed again")
					f.failures = 0
				}
			}
		case nil:
			err = f.catchUpAll(ctx)
		}
		if err != nil {
			return fmt.Errorf("catch up: %w", err)
		}
		if f.away {
			f.sink.SetLive(true)
			f.away = false
		}
	}
}

// hear takes one announcement. One that does not follow the cursor means that
// something was missed, which is then read.
func (f *Follower) hear(ctx context.Context, payload string) error {
	a, err := parseAnnouncement(payload, len(f.cursors))
	if err != nil {
		f.log.Error("an announcement is not understood; the next check finds what it is about", "error", err)
		return nil
	}
	if a.snapshot > 0 {
		f.snapshot(a.snapshot)
		return nil
	}
	last := f.cursors[a.partition].at
	switch {
	case a.entry.previous == last:
		f.take(a.partition, a.entry)
		return nil
	case !a.entry.at.After(last):
		return nil // read from the stream already
	default:
		return f.catchUp(ctx, []int{a.partition})
	}
}

// take applies an entry and moves the cursor to it.
func (f *Follower) take(partition int, e entry) {
	f.cursors[partition] = cursor{entry: e, read: true}
	if isMark(e.text) {
		return
	}
	consent, err := decode(e.text)
	if err != nil {
		f.log.Error("a message is not understood", "entry", e.at.String(), "partition", partition, "error", err)
		f.sink.Gap()
		return
	}
	f.sink.Apply(consent, sendgate.Place{Partition: partition, Offset: e.at})
	f.lag(max(0, f.now().Sub(e.at.Time())))
}
