package feed

import (
	"context"
	_ "embed" // the scripts
	"errors"
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

	announceScript = redis.NewScript(announceSource)
	clockScript    = redis.NewScript(clockSource)
	markScript     = redis.NewScript(markSource)
)

// ErrStale is the refusal of a state that was read from the store too long
// ago.
var ErrStale = errors.New("the record was read from the store too long ago to be announced")

// Publisher announces changes. It implements prefs.Announcer and is safe for
// concurrent use.
type Publisher struct {
	client redis.UniversalClient
	space  *keyspace.Space
}

// NewPublisher makes a Publisher.
func NewPublisher(client redis.UniversalClient, space *keyspace.Space) *Publisher {
	return &Publisher{client: client, space: space}
}

// Clock reads the clock of the Redis that holds a user's partition.
func (p *Publisher) Clock(ctx context.Context, user sendgate.UserID) (time.Time, error) {
	stream := p.space.Stream(p.space.Partition(user))
	micros, err := clockScript.Run(ctx, p.client, []string{stream}).Int64()
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
	partition := p.space.Partition(c.User)
	done, err := announceScript.Run(ctx, p.client, []string{p.space.Record(c.User), p.space.Stream(partition)},
		c.Revision, keyspace.RecordValue(c.Revision, body), keyspace.RecordTTL().Milliseconds(), text, maxStreamLength,
		p.space.Channel(), partition, readAt.UnixMicro(), maxReadAge.Microseconds()).Text()
	if err == nil && done == "stale" {
		err = ErrStale
	}
	return err
}
