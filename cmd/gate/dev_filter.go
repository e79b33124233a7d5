package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

const (
	devChanges = 1000             // after which the filter is built again
	devRebuild = 15 * time.Minute // at the latest
	devMemory  = 64 << 20
)

// devFilters is a builder beside the gate, in the same process: one bbolt file
// is open to one process only.
type devFilters struct {
	dir     string
	archive *archive.Archive
	cancel  context.CancelFunc
	ended   chan struct{}
}

// startDevFilters begins to build filters, the first one at once. They are of no
// use to a later run, whose change streams are others.
func startDevFilters(ctx context.Context, catalog *sendgate.Catalog, store prefs.Store, client redis.UniversalClient, log *slog.Logger) (*devFilters, error) {
	layout, err := store.Layout(ctx, prefs.Layout{Partitions: keyspace.DefaultPartitions})
	if err != nil {
		return nil, err
	}
	space, err := keyspace.New(keyspace.DefaultNamespace, layout.Partitions)
	if err != nil {
		return nil, err
	}
	f := &devFilters{ended: make(chan struct{})}
	if f.dir, err = os.MkdirTemp("", "sendgate-filters-"); err != nil {
		return nil, err
	}
	where := url.URL{Scheme: "file", Path: f.dir}
	if f.archive, err = archive.Open(ctx, where.String(), keyspace.DefaultNamespace); err != nil {
		return nil, errors.Join(err, os.RemoveAll(f.dir))
	}
	builder := rebuild.New(rebuild.Options{
		Store: store, Streams: feed.NewPublisher(client, space), Archive: f.archive, Namespace: keyspace.DefaultNamespace,
		Catalog: func() (*sendgate.Catalog, error) { return catalog, nil },
		Memory:  devMemory, MaxFalsePositive: 0.001, AimFalsePositive: 1e-6, Segments: 1, Keep: 1,
		Progress: rebuild.NewLines(log, time.Now), Now: time.Now,
	})
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		defer close(f.ended)
		builder.Run(ctx, rebuild.Schedule{
			Cron: cron.Every(devRebuild), EarlyChanges: devChanges, Every: time.Second, Skipped: func(int) {},
		})
	}()
	return f, nil
}

func (f *devFilters) options() *node.Filter {
	return &node.Filter{Archive: f.archive, Poll: time.Second, MaxAge: 4 * devRebuild, VerifySample: 1}
}

func (f *devFilters) stop() error {
	f.cancel()
	<-f.ended
	return errors.Join(f.archive.Close(), os.RemoveAll(f.dir))
}
