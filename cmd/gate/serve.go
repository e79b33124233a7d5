package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/backend"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/config"
	"github.com/sendgate/sendgate/decisionlog"
	"github.com/sendgate/sendgate/internal/cli"
	"github.com/sendgate/sendgate/node"
)

type serveCmd struct {
	Config      string `required:"" type:"existingfile" placeholder:"FILE" help:"The configuration file."`
	DecisionLog string `type:"path" placeholder:"FILE" help:"Write down what caps allow and deny, and what becomes of it, at the end of this file. SIGHUP opens it anew."`
}

func (c serveCmd) Run(ctx context.Context, s cli.Streams) (err error) {
	conf, err := config.Load(c.Config, cli.Environment())
	if err != nil {
		return err
	}
	level, err := conf.Log.SlogLevel()
	if err != nil {
		return err
	}
	catalog, err := catalogfile.Load(conf.Catalog)
	if err != nil {
		return err
	}
	b, err := backend.Open(ctx, conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var filter *node.Filter
	if b.Archive != nil {
		filter = &node.Filter{
			Archive: b.Archive, CacheDir: conf.Filter.CacheDir, Poll: conf.Filter.Poll,
			MaxAge: conf.Filter.MaxAge, VerifySample: conf.Filter.VerifySample, MaxFalsePositive: conf.Filter.MaxFalsePositive,
		}
	}
	log := cli.NewLog(s.Err, level)
	var decisions *decisionlog.Log
	if c.DecisionLog != "" {
		decisions, err = decisionlog.Open(decisionlog.Options{Path: c.DecisionLog, Log: log, Now: time.Now})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, decisions.Close()) }()
	}
	return serve(ctx, conf.Listen, node.Options{
		Decisions: decisions, Filter: filter, Catalog: catalog, Reload: func() (*sendgate.Catalog, error) { return catalogfile.Load(conf.Catalog) },
		Redis: b.Redis, CapsRedis: b.CapsRedis, Store: b.Store, Namespace: conf.Namespace, Partitions: conf.Partitions,
		Linger: conf.ShutdownDelay, RedisLimit: conf.Timeouts.Redis, StoreLimit: conf.Timeouts.Store, Log: log,
	}, func(addr string) error {
		_, err := fmt.Fprintf(s.Out, "gate: listening on http://%s\n", addr)
		return err
	})
}

// serve runs a gate until the context ends. SIGHUP reads the catalog again, and opens
// the decision log anew.
// started is called once the gate accepts connections.
func serve(ctx context.Context, addr string, o node.Options, started func(addr string) error) error {
	warnUnlessLoopback(o.Log, addr)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, o)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer n.Close()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx, listener) }()
	if err := started(listener.Addr().String()); err != nil {
		o.Log.Warn("cannot say where the gate listens", "error", err)
	}
	for {
		select {
		case err := <-served:
			return err
		case <-hangups:
			n.Reload()
		}
	}
}

// warnUnlessLoopback says that anybody who reaches the listener may use it.
func warnUnlessLoopback(log *slog.Logger, addr string) {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return
	}
	log.Warn("the gate has no authentication yet: whoever reaches this address can use it", "listen", addr)
}
