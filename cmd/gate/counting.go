package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	Config     string `required:"" type:"existingfile" help:"The configuration file, the same as the gates'."`
	Partitions int    `placeholder:"N" help:"How many partitions the store was created with (256 unless it was configured). The store is not asked then: a file that a gate has open cannot be."`
}

// caps opens the caps of a configuration. What is closed ends them.
func (c counting) caps(ctx context.Context) (caps *freqcap.Limiter, closes io.Closer, err error) {
	conf, err := config.Load(c.Config, cli.Environment())
	if err != nil {
		return nil, nil, err
	}
	partitions := c.Partitions
	var opened closers
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	if partitions == 0 {
		if partitions, err = partitionsOf(ctx, conf); err != nil {
			return nil, nil, fmt.Errorf("%w (--partitions does without the store)", err)
		}
	}
	space, err := keyspace.New(conf.Namespace, partitions)
	if err != nil {
		return nil, nil, err
	}
	at := conf.CapsRedis
	if conf.CapsBesideRecords() {
		at = conf.Redis
	}
	client, err := redisconn.Open(at)
	if err != nil {
		return nil, nil, fmt.Errorf("the caps' redis: %w", err)
	}
	opened = append(opened, client)
	g := guard.New(guard.Options{Name: "caps", Limit: countLimit, InFlight: countInFlight, Answered: redisconn.Answered})
	return freqcap.New(client, space, g), opened, nil
}

// partitionsOf asks the store how many partitions there are.
func partitionsOf(ctx context.Context, conf *config.Config) (n int, err error) {
	b, err := backend.Open(ctx, conf)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	layout, err := b.Store.Layout(ctx, prefs.Layout{Partitions: conf.Partitions})
	return layout.Partitions, err
}

type closers []io.Closer

// Close closes them all.
func (all closers) Close() (err error) {
	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	return err
}
