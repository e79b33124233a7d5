// Package redisconn opens connections to Redis the way Sendgate needs them:
// every command ends with its context, is asked once, and takes a connection
// from a pool that is bounded.
//
// A cluster's client asks again, within the same context, where a node says
// that the slot has moved, and where a connection broke. A command that must
// not run twice has to say so itself (NoRetry).
package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options say where a Redis is.
type Options struct {
	Mode     string   `yaml:"mode" env:"MODE"`         // `single` or `cluster`; empty is single
	Addrs    []string `yaml:"addrs" env:"ADDRS"`       // host:port
	Username string   `yaml:"username" env:"USERNAME"` // ACL user, optional
	Password string   `yaml:"password" env:"PASSWORD"`
	TLS      bool     `yaml:"tls" env:"TLS"`
	PoolSize int      `yaml:"pool_size" env:"POOL_SIZE"` // connections per node; 0 is the default of 64
}

const (
	defaultPoolSize = 64
	maxPoolSize     = 10_000
	warmConns       = 4 // kept open for commands to come
	// ioLimit is for dialling, and for commands whose context has no end. A
	// dial outlives the command that asked for it, so that the next one finds
	// the connection.
	ioLimit = 2 * time.Second
)

// Validate says what is wrong with the options, as `member: what`.
func (o Options) Validate() error {
	switch {
	case o.Mode != "" && o.Mode != "single" && o.Mode != "cluster":
		return fmt.Errorf("mode: must be single or cluster, not %.64q", o.Mode)
	case len(o.Addrs) == 0:
		return errors.New("addrs: at least one host:port is needed")
	case o.Mode != "cluster" && len(o.Addrs) > 1:
		return errors.New("addrs: a single Redis has one address")
	case o.Username != "" && o.Password == "":
		return errors.New("username: a user needs a password; without one nobody would be logged in")
	case o.PoolSize < 0 || o.PoolSize > maxPoolSize:
		return fmt.Errorf("pool_size: must be from 0 to %d", maxPoolSize)
	}
	for i, addr := range o.Addrs {
		if err := ValidateAddr(addr); err != nil {
			return fmt.Errorf("addrs[%d]: %w", i, err)
		}
		if slices.Contains(o.Addrs[:i], addr) {
			return fmt.Errorf("addrs[%d]: %q is named twice", i, addr)
		}
	}
	return nil
}

// ValidateAddr refuses what is not host:port with a port from 1 to 65535.
func ValidateAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || n == 0 || host == "" || strings.ContainsAny(host, " \t\r\n/@") {
		return fmt.Errorf("must be host:port, not %.64q", addr)
	}
	return nil
}

// Open makes a client. It does not wait for a connection: a few are made in
// the background, and others by the commands that need them.
func Open(o Options) (redis.UniversalClient, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	redis.SetLogger(silence{})
	u := &redis.UniversalOptions{
		Addrs: o.Addrs, Username: o.Username, Password: o.Password, IsClusterMode: o.Mode == "cluster",
		MaxRetries: -1, MaxRedirects: 2, ContextTimeoutEnabled: true,
		DialTimeout: ioLimit, DialerRetries: 1, ReadTimeout: ioLimit, WriteTimeout: ioLimit,
		PoolSize: defaultPoolSize, MinIdleConns: warmConns,
		// A new connection says hello and no more: within a limit of a few
		// milliseconds every round trip counts.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.PoolSize > 0 {
		u.PoolSize, u.MinIdleConns = o.PoolSize, min(warmConns, o.PoolSize)
	}
	u.Dialer = dialer.DialContext
	if o.TLS {
		u.Dialer = (&tls.Dialer{NetDialer: dialer, Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext
	}
	return redis.NewUniversalClient(u), nil
}

// dialer has the system find out within seconds that the other end of an idle
// connection is gone. A pool is full of such after a fault, and each would cost
// one command its time limit.
var dialer = &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 2}}

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
