// Package redisconn opens connections to Redis the way Sendgate needs them:
// one attempt per command, every command under its context's deadline, and a
// pool that is bounded.
package redisconn

import (
	"crypto/tls"
	"errors"
	"fmt"
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

const defaultPoolSize = 64

// Validate says what is wrong with the options, naming the member.
func (o Options) Validate() error {
	switch {
	case o.Mode != "" && o.Mode != "single" && o.Mode != "cluster":
		return fmt.Errorf("mode: must be single or cluster, not %q", o.Mode)
	case len(o.Addrs) == 0:
		return errors.New("addrs: at least one host:port is needed")
	case o.Mode != "cluster" && len(o.Addrs) > 1:
		return errors.New("addrs: a single Redis has one address")
	case o.PoolSize < 0:
		return errors.New("pool_size: must not be negative")
	}
	return nil
}

// Open makes a client. It does not connect: the first command does.
func Open(o Options) (redis.UniversalClient, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	u := &redis.UniversalOptions{
		Addrs: o.Addrs, Username: o.Username, Password: o.Password, IsClusterMode: o.Mode == "cluster",
		MaxRetries: -1, MaxRedirects: 2, ContextTimeoutEnabled: true,
		DialTimeout: 2 * time.Second, DialerRetries: 1, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second,
		PoolSize: defaultPoolSize, MinIdleConns: 4,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.PoolSize > 0 {
		u.PoolSize = o.PoolSize
	}
	if o.TLS {
		u.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return redis.NewUniversalClient(u), nil
}

// Answered tells whether an error was given by a Redis that is alive and
// serving: it lacks a script or a key, or is out of memory for writes.
func Answered(err error) bool {
	return errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "NOSCRIPT") || redis.HasErrorPrefix(err, "OOM") ||
		strings.HasPrefix(err.Error(), "OOM")
}
