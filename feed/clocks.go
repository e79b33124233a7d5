package feed

import (
	"context"
	_ "embed" // the script
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/keyspace"
)

// clockFor is how long what a clock said is used. It makes what is announced
// seem older by as much, never younger.
const clockFor = time.Second

var (
	//go:embed clock.lua
	clockSource string
	clockScript = redis.NewScript(clockSource)
)

// clocks remembers what the clocks of the Redis' said lately, so that a burst
// of changes does not ask before each. In a cluster every partition may be at
// another one.
type clocks struct {
	client redis.UniversalClient
	space  *keyspace.Space
	now    func() time.Time
	said   []atomic.Pointer[saying] // by partition, or of the only Redis
}

// saying is what a clock said, and when that was known here.
type saying struct{ redis, here time.Time }

func newClocks(client redis.UniversalClient, space *keyspace.Space, now func() time.Time) clocks {
	n := 1
	if _, many := client.(*redis.ClusterClient); many {
		n = space.Partitions()
	}
	return clocks{client, space, now, make([]atomic.Pointer[saying], n)}
}

func (c *clocks) slot(partition int) *atomic.Pointer[saying] { return &c.said[partition%len(c.said)] }

// read tells what the clock of a partition's Redis said lately.
func (c *clocks) read(ctx context.Context, partition int) (time.Time, error) {
	here := c.now()
	if s := c.slot(partition).Load(); s != nil {
		if age := here.Sub(s.here); age >= 0 && age < clockFor {
			return s.redis, nil
		}
	}
	micros, err := clockScript.Run(ctx, c.client, []string{c.space.Stream(partition)}).Int64()
	if err != nil {
		return time.Time{}, err
	}
	s := &saying{redis: time.UnixMicro(micros), here: here}
	c.slot(partition).Store(s)
	return s.redis, nil
}

// forget has a clock asked again: another Redis may have taken its place.
func (c *clocks) forget(partition int) { c.slot(partition).Store(nil) }
