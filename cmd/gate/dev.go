package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/cli"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs/boltstore"
	"github.com/sendgate/sendgate/redisconn"
)

const (
	devLimit = time.Second            // of waiting for the embedded Redis and the store
	devTick  = 100 * time.Millisecond // of the embedded Redis' TTLs
)

type devCmd struct {
	Addr     string `default:"127.0.0.1:8080" help:"Where to listen (host:port)."`
	Data     string `default:"data" type:"path" help:"The folder that preferences are kept in."`
	Catalog  string `type:"existingfile" help:"A catalog file in place of the sample."`
	LogLevel string `default:"warn" enum:"debug,info,warn,error" help:"What to log: ${enum}."`
}

func (c devCmd) Run(ctx context.Context, s cli.Streams) (err error) {
	catalog, reload := catalogfile.Sample(), (func() (*sendgate.Catalog, error))(nil)
	if c.Catalog != "" {
		reload = func() (*sendgate.Catalog, error) { return catalogfile.Load(c.Catalog) }
		if catalog, err = reload(); err != nil {
			return err
		}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	store, err := boltstore.Open(filepath.Join(c.Data, "sendgate.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	embedded, err := startEmbedded()
	if err != nil {
		return err
	}
	defer embedded.stop()
	client, err := redisconn.Open(redisconn.Options{Addrs: []string{embedded.server.Addr()}})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	log := cli.NewLog(s.Err, level)
	filters, err := startDevFilters(ctx, c.Data, catalog, store, client, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, filters.stop()) }()
	return serve(ctx, c.Addr, node.Options{
		CapsEmbedded: true, Catalog: catalog, Reload: reload, Redis: client, Store: store, Filter: filters.options(),
		Namespace: keyspace.DefaultNamespace, Partitions: keyspace.DefaultPartitions,
		RedisLimit: devLimit, StoreLimit: devLimit, Log: log,
	}, func(addr string) error {
		_, err := fmt.Fprintf(s.Out, devGreeting, addr, c.Data, cli.Version())
		return err
	})
}

const devGreeting = `Sendgate %[3]s, a gate for trying out, not for production: http://%[1]s
Preferences are kept in %[2]s; frequency caps are in memory and start anew with the process.

Ask it:
  curl -s http://%[1]s/v1/check -H 'Content-Type: application/json' \
    -d '{"notification_id":"n_1","user_id":"u_42","topic":"promotions","channel":"push"}'
Say no to it:
  curl -s -X PATCH http://%[1]s/v1/users/u_42/preferences -H 'Content-Type: application/json' \
    -d '{"preferences":[{"topic":"promotions","channel":"push","enabled":false}]}'
Then ask again, or ask why:
  gate explain --url http://%[1]s --user u_42 --topic promotions --channel push
`

// embeddedRedis is a Redis inside this process. Its clock moves only where
// TTLs are concerned if somebody moves it, which a ticker does.
type embeddedRedis struct {
	server *miniredis.Miniredis
	done   chan struct{}
	ended  chan struct{}
}

func startEmbedded() (*embeddedRedis, error) {
	e := &embeddedRedis{server: miniredis.NewMiniRedis(), done: make(chan struct{}), ended: make(chan struct{})}
	if err := e.server.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(e.ended)
		tick := time.NewTicker(devTick)
		defer tick.Stop()
		for {
			select {
			case <-e.done:
				return
			case <-tick.C:
				e.server.FastForward(devTick)
			}
		}
	}()
	return e, nil
}

func (e *embeddedRedis) stop() {
	close(e.done)
	<-e.ended
	e.server.Close()
}
