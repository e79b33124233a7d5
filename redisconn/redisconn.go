// Package redisconn opens connections to Redis the way Sendgate needs them:
// every command ends with its context, is asked once, and takes a connection
// from a pool that is bounded.
//
// A cluster's client asks again, within the same context, where a node says
// that the slot has moved, and where a connection broke. A command that must
// not run twice has to say so itself (NoRetry).
//
// Behind Sentinel, every new connection is to the Redis that a Sentinel names
// as the master, and is not used if that says it is a replica.
package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	warmConns = 4 // kept open for commands to come
	// ioLimit is for dialling, and for commands whose context has no end. A
	// dial outlives the command that asked for it, so that the next one finds
	// the connection.
	ioLimit = 2 * time.Second
	// learnAgain is how old what is known of a cluster's nodes may be when it is
	// used. A master that died without a word is found out by nothing else.
	learnAgain = time.Second
)

// Open makes a client. It does not wait for a connection: a few are made in
// the background, and others by the commands that need them.
func Open(o Options) (redis.UniversalClient, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	dial, err := o.dialer()
	if err != nil {
		return nil, err
	}
	redis.SetLogger(silence{})
	u := &redis.UniversalOptions{
		Addrs: o.Addrs, Username: o.Username, Password: o.Password, IsClusterMode: o.Mode == modeCluster,
		MaxRetries: -1, MaxRedirects: 2, ContextTimeoutEnabled: true,
		DialTimeout: ioLimit, DialerRetries: 1, ReadTimeout: ioLimit, WriteTimeout: ioLimit,
		PoolSize: defaultPoolSize, MinIdleConns: warmConns, Dialer: dial,
		// A new connection says hello and no more: within a limit of a few
		// milliseconds every round trip counts.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.PoolSize > 0 {
		u.PoolSize, u.MinIdleConns = o.PoolSize, min(warmConns, o.PoolSize)
	}
	if o.Mode == modeSentinel {
		return openSentinel(o, u), nil
	}
	if o.Mode == modeCluster {
		c := u.Cluster()
		c.ClusterStateReloadInterval = learnAgain
		return redis.NewClusterClient(c), nil
	}
	return redis.NewUniversalClient(u), nil
}

// dialer makes one connection, in clear or by TLS, within ioLimit.
func (o Options) dialer() (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	// The system finds out within seconds that the other end of an idle
	// connection is gone. A pool is full of such after a fault, and each would
	// cost one command its time limit.
	plain := &net.Dialer{
		Timeout:         ioLimit,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 2},
	}
	if !o.TLS {
		return plain.DialContext, nil
	}
	c, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	secure := &tls.Dialer{NetDialer: plain, Config: c}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := secure.DialContext(ctx, network, addr)
		if err != nil { // a Redis without TLS just waits for more
			return nil, fmt.Errorf("connect to %s by TLS: %w", addr, err)
		}
		return conn, nil
	}, nil
}

// silence takes go-redis' own log, which would go to the standard error past
// the program's. Nothing is lost with it: every failure is also the error of
// the command that met it.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// notServing begin the errors of a Redis that is there and does not do its
// work: it is starting, has lost its master or its cluster, is held up by a
// script, or lets nobody in.
var notServing = []string{
	"LOADING ", "MASTERDOWN ", "CLUSTERDOWN ", "READONLY ", "TRYAGAIN ", "MOVED ", "ASK ", "BUSY ",
	"NOAUTH ", "WRONGPASS ", "DENIED ", "max number of clients ",
}

// Answered tells whether an error was given by a Redis that is alive and
// serving: it lacks a key or a script, has no room for writes, or found
// something wrong with this one command. Such an error says nothing of the
// commands of others.
//
// A pipeline has as many errors as commands, and the one that Exec returns may
// be the least of them: ask of each.
func Answered(err error) bool {
	var given redis.Error
	if !errors.As(err, &given) || isLost(err) {
		return false
	}
	return !slices.ContainsFunc(notServing, func(p string) bool { return redis.HasErrorPrefix(given, p) })
}

// isLost tells whether an answer failed to come, beside whatever else an error
// holds.
func isLost(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
