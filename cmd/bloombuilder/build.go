package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/backend"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/config"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/cli"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

const (
	segments  = 16               // of the store that are read at once
	lookEvery = 10 * time.Second // whether a rebuild is due
)

type buildCmd struct {
	Config string `required:"" type:"existingfile" help:"The configuration file, the same as the gate's."`
	Once   bool   `help:"Build one filter now, and end."`
}

func (c buildCmd) Run(ctx context.Context, s cli.Streams) (err error) {
	signal.Ignore(syscall.SIGHUP) // which has a gate read the catalog again; a rebuild does so anyway
	conf, err := config.Load(c.Config, cli.Environment())
	if err != nil {
		return err
	}
	if conf.Filter.URL == "" {
		return errors.New("filter.url: there is no place to publish filters at, such as file:///var/lib/sendgate/filters")
	}
	level, err := conf.Log.SlogLevel()
	if err != nil {
		return err
	}
	schedule, err := config.ParseSchedule(conf.Filter.Schedule)
	if err != nil {
		return err
	}
	b, err := backend.Open(ctx, conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	log := cli.NewLog(s.Err, level)
	o, err := options(ctx, conf, b, progressOn(s, log), log)
	if err != nil {
		return err
	}
	builder := rebuild.New(o)
	if c.Once {
		_, err := builder.Once(ctx)
		return err
	}
	builder.Run(ctx, rebuild.Schedule{
		Cron: schedule, EarlyChanges: int64(conf.Filter.EarlyChanges), Every: lookEvery,
		Skipped: func(n int) { log.Warn("rebuilds were due while another ran, and were skipped", "skipped", n) },
	})
	return nil
}

// options are what a configuration makes of a rebuild. The store is asked how
// many change streams there are.
func options(ctx context.Context, conf *config.Config, b *backend.Backend, progress rebuild.Progress, log *slog.Logger) (o rebuild.Options, err error) {
	layout, err := b.Store.Layout(ctx, prefs.Layout{Partitions: conf.Partitions})
	if err != nil {
		return o, err
	}
	space, err := keyspace.New(conf.Namespace, layout.Partitions)
	if err != nil {
		return o, err
	}
	return rebuild.Options{
		Store: b.Store, Streams: feed.NewPublisher(b.Redis, space, sendgate.SystemClock), Archive: b.Archive, Namespace: conf.Namespace,
		Catalog: catalogOf(conf.Catalog, log),
		Memory:  int64(conf.Filter.Memory), MaxFalsePositive: conf.Filter.MaxFalsePositive, AimFalsePositive: conf.Filter.AimFalsePositive,
		KeyMemory: int64(conf.Filter.BuildMemory), WorkDir: conf.Filter.WorkDir,
		Segments: segments, Keep: conf.Filter.Keep, Progress: progress, Now: time.Now,
	}, nil
}

// catalogOf reads the catalog anew for every rebuild. One with a fault does not
// keep a filter from being built: the last good one says which opt-ins it has,
// and gates ask the record about all others.
func catalogOf(path string, log *slog.Logger) func() (*sendgate.Catalog, error) {
	var last *sendgate.Catalog
	return func() (*sendgate.Catalog, error) {
		catalog, err := catalogfile.Load(path)
		switch {
		case err == nil:
			last = catalog
		case last != nil:
			log.Error("the catalog has a fault; the last good one is used", "error", err)
		default:
			return nil, err
		}
		return last, nil
	}
}

// progressOn shows progress as a bar on a terminal, and as log lines otherwise.
func progressOn(s cli.Streams, log *slog.Logger) rebuild.Progress {
	if f, ok := s.Err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return newBar(f)
	}
	return rebuild.NewLines(log, time.Now)
}
