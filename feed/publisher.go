package feed

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
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
	//go:embed clock.lua
	clockSource string
	//go:embed mark.lua
	markSource string
	//go:embed position.lua
	positionSource string

	announceScript = redis.NewScript(announceSource)
	clockScript    = redis.NewScript(clockSource)
	markScript     = redis.NewScript(markSource)
)

// ErrStale is the refusal of a state that was read from the store too long
// ago.
var ErrStale = errors.New("the record was read from the store too long ago to be announced")

// Publisher announces changes, and filters that were published. It implements
// prefs.Announcer and is safe for concurrent use.
type Publisher struct{ streams streams }

// NewPublisher makes a Publisher.
func NewPublisher(client redis.UniversalClient, space *keyspace.Space) *Publisher {
	return &Publisher{streams{client, space}}
}

// Clock reads the clock of the Redis that holds a user's partition.
func (p *Publisher) Clock(ctx context.Context, user sendgate.UserID) (time.Time, error) {
	space := p.streams.space
	micros, err := clockScript.Run(ctx, p.streams.client, []string{space.Stream(space.Partition(user))}).Int64()
	return time.UnixMicro(micros), err
}

// Announce announces a user's consent and puts the encoded preferences that it
// is from into the cache. A state that is older than the cached one is left
// alone, which is no error. ErrStale is returned for one that was read too
// long ago.
func (p *Publisher) Announce(ctx context.Context, c sendgate.Consent, body []byte, readAt time.Time) error {
	text, err := encode(c, readAt)
	if err != nil {
		return err
	}
	space := p.streams.space
	partition := space.Partition(c.User)
	done, err := announceScript.Run(ctx, p.streams.client, []string{space.Record(c.User), space.Stream(partition)},
		c.Revision, keyspace.RecordValue(c.Revision, body), keyspace.RecordTTL().Milliseconds(), text, maxStreamLength,
		space.Channel(), partition, readAt.UnixMicro(), maxReadAge.Microseconds()).Text()
	if err == nil && done == "stale" {
		err = ErrStale
	}
	return err
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
