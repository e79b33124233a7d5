package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// sentinelDialLimit is for asking who the master is and for connecting to it.
// A Sentinel whose machine is gone costs three time limits: two until it is
// given up, and one until all others have been waited for together. A dial that
// ended before would leave that to chance.
const sentinelDialLimit = 4 * ioLimit

// openSentinel makes a client of whatever Redis the Sentinels name as the
// master. They are told apart from it by their own user alone: TLS and the
// limits are the same.
func openSentinel(o Options, u *redis.UniversalOptions) redis.UniversalClient {
	u.MasterName, u.SentinelUsername, u.SentinelPassword = o.MasterName, o.SentinelUsername, o.SentinelPassword
	u.DialTimeout = sentinelDialLimit
	u.OnConnect = refuseReplica
	client := redis.NewUniversalClient(u)
	client.AddHook(masterHook{o.MasterName})
	return client
}

// refuseReplica gives up a connection to a Redis that is not, or no longer, a
// master. A Sentinel may be behind, and a replica would serve old records.
func refuseReplica(ctx context.Context, conn *redis.Conn) error {
	role, err := conn.Do(ctx, "ROLE").Slice()
	if err != nil {
		return notReached("ask a Redis that Sentinel named for its role", err)
	}
	// The Sentinels are connected to in the same way.
	if len(role) == 0 || role[0] != "master" && role[0] != "sentinel" {
		return errors.New("the Redis that Sentinel names as the master is a replica")
	}
	return nil
}

// notReached is the error of a connection that was not made. What a Sentinel
// has answered must not look like the answer of the Redis that was asked: of an
// unknown master it says what a Redis says of a key that is not there.
func notReached(what string, err error) error {
	var given redis.Error
	if errors.As(err, &given) {
		return fmt.Errorf("%s: %s", what, err.Error())
	}
	return fmt.Errorf("%s: %w", what, err)
}

// masterHook explains why there is no connection to the master.
type masterHook struct{ name string }

// DialHook wraps the search for the master and the connection to it.
func (h masterHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, redis.Nil):
			return nil, fmt.Errorf("no Sentinel that answers knows a master called %q", h.name)
		}
		return nil, notReached(fmt.Sprintf("connect to the master %q", h.name), err)
	}
}

// ProcessHook leaves commands alone.
func (masterHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook leaves pipelines alone.
func (masterHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
