package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
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
	devChanges       = 1000             // after which the filter is built again
	devRebuild       = 15 * time.Minute // at the latest
	devMemory        = 64 << 20
	devFalsePositive = 0.001
)

// devFilters is a builder beside the gate, in the same process: one bbolt file
// is open to one process only.
type devFilters struct {
	dir     string
	archive *archive.Archive
	cancel  context.CancelFunc
	ended   chan struct{}
}

// devFolder begins the name of the folder that filters are in while a gate runs.
const devFolder = ".filters-"

// newFolder makes a folder for filters beside the store, and removes what an
// earlier run has left that was killed: its filters are of no use, as the change
// streams that they were built beside are gone. Nobody else has the store open.
func newFolder(data string) (string, error) {
	data, err := filepath.Abs(data)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(data)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), devFolder) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(data, e.Name())); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(data, devFolder)
}

// startDevFilters begins to build filters, the first one at once.
func startDevFilters(ctx context.Context, data string, catalog *sendgate.Catalog, store prefs.Store, client redis.UniversalClient, log *slog.Logger) (*devFilters, error) {
	layout, err := store.Layout(ctx, prefs.Layout{Partitions: keyspace.DefaultPartitions})
	if err != nil {
		return nil, err
	}
	space, err := keyspace.New(keyspace.DefaultNamespace, layout.Partitions)
	if err != nil {
		return nil, err
	}
	f := &devFilters{ended: make(chan struct{})}
	if f.dir, err = newFolder(data); err != nil {
		return nil, err
	}
	where := url.URL{Scheme: "file", Path: f.dir}
	if f.archive, err = archive.Open(ctx, where.String(), keyspace.DefaultNamespace); err != nil {
		return nil, errors.Join(err, os.RemoveAll(f.dir))
	}
	builder := rebuild.New(rebuild.Options{
		Store: store, Streams: feed.NewPublisher(client, space, sendgate.SystemClock), Archive: f.archive, Namespace: keyspace.DefaultNamespace,
		Catalog: func() (*sendgate.Catalog, error) { return catalog, nil },
		Memory:  devMemory, MaxFalsePositive: devFalsePositive, AimFalsePositive: 1e-6, KeyMemory: devMemory, WorkDir: f.dir, Segments: 1, Keep: 1,
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
	return &node.Filter{Archive: f.archive, CacheDir: f.dir, Poll: time.Second, MaxAge: 4 * devRebuild, VerifySample: 1, MaxFalsePositive: devFalsePositive}
}

func (f *devFilters) stop() error {
	f.cancel()
	<-f.ended
	return errors.Join(f.archive.Close(), os.RemoveAll(f.dir))
}
