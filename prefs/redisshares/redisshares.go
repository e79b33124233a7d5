// Package redisshares divides the pending index among the gates that sweep it.
// Every gate says in Redis that it is there. Each shard then falls to the gate
// whose name and the shard's number have the greatest hash together, so that
// all gates come to the same division without asking each other, and one gate
// more or less moves few shards.
//
// It saves work, and no promise hangs on it: a shard that two gates sweep, or
// none for a while, does no harm. A gate that has gone away is missed after
// five seconds.
package redisshares

import (
	"context"
	_ "embed" // the script
	"errors"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
)

// missedAfter is how long a gate counts after it last said that it is there.
const missedAfter = 5 * time.Second

var (
	//go:embed enlist.lua
	enlistSource string
	enlistScript = redis.NewScript(enlistSource)
)

// Shares implements prefs.Shares for one gate.
type Shares struct {
	client redis.UniversalClient
	key    string
	name   string // of this gate, for as long as it lives
}

// New makes the Shares of a gate.
func New(client redis.UniversalClient, space *keyspace.Space) *Shares {
	return &Shares{client: client, key: space.Sweepers(), name: ulid.Make().String()}
}

// Take says that this gate is there, and tells which shards are its to sweep.
func (s *Shares) Take(ctx context.Context) (mine [prefs.PendingShards]bool, err error) {
	names, err := enlistScript.Run(ctx, s.client, []string{s.key}, s.name, missedAfter.Milliseconds()).StringSlice()
	if err != nil {
		return mine, err
	}
	if len(names) == 0 {
		return mine, errors.New("nobody sweeps, says Redis, not even this gate")
	}
	for shard := range mine {
		mine[shard] = owner(names, shard) == s.name
	}
	return mine, nil
}

// owner is the gate that a shard falls to.
func owner(names []string, shard int) (owner string) {
	var greatest uint64
	for _, name := range names {
		if h := xxhash.Sum64String(strconv.Itoa(shard) + " " + name); owner == "" || h > greatest {
			owner, greatest = name, h
		}
	}
	return owner
}
