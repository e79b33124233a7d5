package feed

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/redisconn"
)

const (
	// maxReadAge is how old a read of the store may be when it is announced,
	// by Redis' clock. A process that was stopped in between must read again.
	maxReadAge = 10 * time.Second
	// maxStreamLength is about how many entries a partition's stream keeps.
	maxStreamLength = 10_000
)

var (
	//go:embed announce.lua
	announceSource string
	//go:embed mark.lua
	markSource string
	//go:embed position.lua
	positionSource string

	announceScript = redis.NewScript(announceSource)
	markScript     = redis.NewScript(markSource)
)

// ErrStale is the refusal of a state that was read from the store too long
// ago.
var ErrStale = errors.New("the record was read from the store too long ago to be announced")

// Publisher announces changes, and filters that were published. It implements
// prefs.Announcer and is safe for concurrent use.
type Publisher struct {
	streams streams
	clocks  clocks
}

// NewPublisher makes a Publisher. now is this machine's clock, by which the
// age of what Redis' clock said is told.
func NewPublisher(client redis.UniversalClient, space *keyspace.Space, now func() time.Time) *Publisher {
	return &Publisher{streams: streams{client, space}, clocks: newClocks(client, space, now)}
}

// Clock tells what the clock of the Redis that holds a user's partition said,
// a second ago at the most.
func (p *Publisher) Clock(ctx context.Context, user sendgate.UserID) (time.Time, error) {
	return p.clocks.read(ctx, p.streams.space.Partition(user))
}

// Node names the Redis that a user's keys live in, as far as is known.
func (p *Publisher) Node(ctx context.Context, user sendgate.UserID) string {
	return redisconn.Node(ctx, p.streams.client, p.streams.space.Record(user))
}

// Announce announces many users' states, each by one script, all in one round
// trip, and puts their records into the cache. It returns their errors in
// order. A state that is older than the cached one is left alone, which is no
// error; ErrStale is that of one that was read too long ago.
func (p *Publisher) Announce(ctx context.Context, states []sendgate.Announcement) []error {
	errs, calls := make([]error, len(states)), make([]*announceCall, len(states))
	var commands []redisconn.Command
	for i, a := range states {
		if calls[i], errs[i] = p.announceCall(ctx, a); errs[i] == nil {
			commands = append(commands, redisconn.Command{Key: calls[i].keys[0], Cmder: calls[i].reply})
		}
	}
	redisconn.Exec(ctx, p.streams.client, commands)
	for i, call := range calls {
		if call == nil {
			continue
		}
		if redis.HasErrorPrefix(call.reply.Err(), "NOSCRIPT") {
			call.reply = announceScript.Run(ctx, p.streams.client, call.keys, call.args...)
		}
		done, err := call.reply.Text()
		if err == nil && done == "stale" {
			err = ErrStale
			p.clocks.forget(p.streams.space.Partition(states[i].Consent.User))
		}
		errs[i] = err
	}
	return errs
}

// announceCall is one call of the script.
type announceCall struct {
	keys  []string
	args  []any
	reply *redis.Cmd
}

func (p *Publisher) announceCall(ctx context.Context, a sendgate.Announcement) (*announceCall, error) {
	text, err := encode(a.Consent)
	if err != nil {
		return nil, err
	}
	space, user := p.streams.space, a.Consent.User
	partition := space.Partition(user)
	c := &announceCall{
		keys: []string{space.Record(user), space.Stream(partition)},
		args: []any{
			a.Consent.Revision, keyspace.RecordValue(a.Consent.Revision, a.Record), keyspace.RecordTTL().Milliseconds(), text, maxStreamLength,
			space.Channel(), partition, a.ReadAt.UnixMicro(), maxReadAge.Microseconds(),
		},
	}
	c.reply = redis.NewCmd(ctx, slices.Concat([]any{"evalsha", announceScript.Hash(), len(c.keys), c.keys[0], c.keys[1]}, c.args)...)
	return c, nil
}

// AnnounceSnapshot tells every gate that listens now that a filter of a
// generation, from 1, was published. It takes 2 s at most.
func (p *Publisher) AnnounceSnapshot(ctx context.Context, generation int64) error {
	if generation < 1 {
		return fmt.Errorf("a filter's generation must be 1 or more, not %d", generation)
	}
	ctx, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	return p.streams.client.Publish(ctx, p.streams.space.Channel(), snapshotPrefix+strconv.FormatInt(generation, 10)).Err()
}
