package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sendgate/sendgate/backend"
	"github.com/sendgate/sendgate/config"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/internal/cli"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/redisconn"
)

// countLimit is what one call to the caps' Redis may take: nobody's check waits
// for it.
const (
	countLimit    = 5 * time.Second
	countInFlight = 16
)

// counting is what commands have in common that go to the caps' Redis themselves.
type counting struct {
	Config     string `required:"" type:"existingfile" placeholder:"FILE" help:"The configuration file, the same as the gates'."`
	Partitions *int   `placeholder:"N" help:"How many partitions the store was created with (256 unless it was configured). The store is not asked then: a file that a gate has open cannot be."`
}

// counted are the caps of a configuration, and where they are.
type counted struct {
	*freqcap.Limiter
	space   *keyspace.Space
	keys    string // what the space is
	where   string // their Redis, by the configuration's member and its addresses
	catalog string // the path of the catalog
	io.Closer
}

// caps opens the caps of a configuration.
func (c counting) caps(ctx context.Context) (*counted, error) {
	conf, err := config.Load(c.Config, cli.Environment())
	if err != nil {
		return nil, err
	}
	var partitions int
	if c.Partitions != nil {
		partitions = *c.Partitions
	} else if partitions, err = partitionsOf(ctx, conf); err != nil {
		return nil, fmt.Errorf("%w (--partitions does without the store: %d, if it was created by this configuration)", err, conf.Partitions)
	}
	space, err := keyspace.New(conf.Namespace, partitions)
	if err != nil {
		return nil, fmt.Errorf("--partitions: %w", err)
	}
	at, member := conf.CapsRedis, "caps_redis"
	if conf.CapsBesideRecords() {
		at, member = conf.Redis, "redis"
	}
	client, err := redisconn.Open(at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", member, err)
	}
	g := guard.New(guard.Options{Name: "caps", Limit: countLimit, InFlight: countInFlight, Answered: redisconn.Answered})
	return &counted{
		Limiter: freqcap.New(client, space, g), space: space, Closer: client,
		keys:  fmt.Sprintf("namespace %s of %d partitions", conf.Namespace, partitions),
		where: member + ".addrs " + strings.Join(at.Addrs, ","), catalog: conf.Catalog,
	}, nil
}

// partitionsOf asks the store how many partitions there are. It makes none.
func partitionsOf(ctx context.Context, conf *config.Config) (n int, err error) {
	if conf.Store.DynamoDB != nil {
		conf.Store.DynamoDB.Create = false
	} else if _, err := os.Stat(conf.Store.Bbolt.Path); err != nil {
		return 0, fmt.Errorf("store.bbolt.path: no gate has made this file yet: %w", err)
	}
	b, err := backend.Open(ctx, conf)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	layout, err := b.Store.Layout(ctx, prefs.Layout{Partitions: conf.Partitions})
	return layout.Partitions, err
}
