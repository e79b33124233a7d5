// Package rediscache keeps users' preferences in Redis, one key a user, as
// package keyspace lays them out. A miss leaves a lease in the key, and only
// its holder may fill it, so that a slow reader cannot put an old record over
// a newer one that has come and gone. Changes are written to the same key by
// package feed.
package rediscache

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/redisconn"
)

// leaseFor is how long a reader has to fill the key. It is longer than a read
// of the store may take.
const leaseFor = 3 * time.Second

var (
	//go:embed lease.lua
	leaseSource string
	//go:embed fill.lua
	fillSource string

	leaseScript = redis.NewScript(leaseSource)
	fillScript  = redis.NewScript(fillSource)
)

// Cache implements prefs.Cache. It is safe for concurrent use.
type Cache struct {
	client redis.UniversalClient
	pipes  *redisconn.Pipes
	space  *keyspace.Space
}

// New makes a Cache.
func New(client redis.UniversalClient, space *keyspace.Space) *Cache {
	return &Cache{client: client, pipes: redisconn.NewPipes(client), space: space}
}

// Get reads many users' entries in one round trip. A lease, and a value that is
// not understood here, count as absent.
func (c *Cache) Get(ctx context.Context, users []sendgate.UserID) []prefs.Cached {
	replies, commands := make([]*redis.StringCmd, len(users)), make([]redisconn.Command, len(users))
	for i, u := range users {
		key := c.space.Record(u)
		replies[i] = redis.NewStringCmd(ctx, "get", key)
		commands[i] = redisconn.Command{Key: key, Cmder: replies[i]}
	}
	errs := c.pipes.Exec(ctx, commands)
	found := make([]prefs.Cached, len(users))
	for i, reply := range replies {
		found[i] = cached(reply, errs[i])
	}
	return found
}

// Lease asks for the right to fill a user's entry.
func (c *Cache) Lease(ctx context.Context, user sendgate.UserID, atLeast int64, token string) (granted bool, _ prefs.Cached) {
	lease := keyspace.LeaseValue(token)
	held, err := leaseScript.Run(ctx, c.client, []string{c.space.Record(user)}, lease, atLeast, leaseFor.Milliseconds()).Text()
	if err != nil {
		return false, prefs.Cached{Err: err}
	}
	if held == lease {
		return true, prefs.Cached{}
	}
	return false, prefs.Cached{Preferences: parse(held)}
}

// Fill stores preferences if the lease of that token still stands.
func (c *Cache) Fill(ctx context.Context, user sendgate.UserID, token string, p *sendgate.Preferences) error {
	body, err := prefs.EncodePreferences(p)
	if err != nil {
		return err
	}
	return fillScript.Run(ctx, c.client, []string{c.space.Record(user)}, keyspace.LeaseValue(token),
		keyspace.RecordValue(p.Revision, body), keyspace.RecordTTL().Milliseconds()).Err()
}

// cached reads a reply to GET.
func cached(reply *redis.StringCmd, err error) prefs.Cached {
	switch {
	case errors.Is(err, redis.Nil):
		return prefs.Cached{}
	case err != nil:
		return prefs.Cached{Err: err}
	}
	return prefs.Cached{Preferences: parse(reply.Val()), Value: reply.Val()}
}

// parse reads what a record key holds; nil is a lease or not understood.
func parse(value string) *sendgate.Preferences {
	revision, body, ok := keyspace.ParseRecordValue(value)
	if !ok {
		return nil
	}
	p, err := prefs.DecodePreferences([]byte(body))
	if err != nil || p.Revision != revision {
		return nil
	}
	return p
}
