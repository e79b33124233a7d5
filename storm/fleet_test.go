package storm_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/boltstore"
)

const (
	namespace  = "storm"
	partitions = keyspace.DefaultPartitions
	// depLimit is how long a check waits for Redis and for the store, as it is
	// for `gate dev`. Eight gates on one machine make each other wait.
	depLimit = time.Second
)

// gate is a node that serves on 127.0.0.1.
type gate struct {
	*node.Node
	url string
}

// fleet is some gates over one store and one Redis, each with connections of
// its own.
type fleet struct {
	t      testing.TB
	server *redistest.Server
	client redis.UniversalClient // the harness's own
	store  prefs.Store
	space  *keyspace.Space
	gates  []*gate
	caller *http.Client
}

// newFleet starts gates that use a filter of everybody whom background has
// stored, and follow the change stream.
func newFleet(t testing.TB, size int) *fleet {
	t.Helper()
	f := &fleet{t: t, server: redistest.Start(t)}
	f.client = f.server.Client()
	space, err := keyspace.New(namespace, partitions)
	if err != nil {
		t.Fatal(err)
	}
	f.space = space
	f.openStore()
	background(t, f.store)
	filter := f.buildFilter()
	for range size {
		f.startGate(filter)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * mostInFlight}
	f.caller = &http.Client{Transport: transport, Timeout: 30 * time.Second}
	t.Cleanup(transport.CloseIdleConnections)
	for _, g := range f.gates {
		redistest.Until(t, "the gate follows the stream and uses the filter", func() bool {
			return g.Overlay().Live() && f.filtered(g)
		})
	}
	return f
}

func (f *fleet) openStore() {
	f.t.Helper()
	folder := *dir
	if folder == "" {
		folder = f.t.TempDir()
	} else {
		own, err := os.MkdirTemp(folder, "storm")
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { _ = os.RemoveAll(own) })
		folder = own
	}
	part("store", func() {
		store, err := boltstore.Open(filepath.Join(folder, "storm.db"))
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { _ = store.Close() })
		f.store = store
	})
}

// startGate starts a gate and its listener; the test's end stops both.
func (f *fleet) startGate(filter *node.Filter) {
	f.t.Helper()
	client := f.server.Client()
	part("gate", func() {
		n, err := node.Start(f.t.Context(), node.Options{
			Catalog: catalogfile.Sample(), Redis: client, Store: f.store, Filter: filter, Namespace: namespace, Partitions: partitions,
			RedisLimit: depLimit, StoreLimit: depLimit, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(n.Close)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			f.t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- n.Serve(ctx, listener) }()
		f.t.Cleanup(func() {
			stop()
			if err := <-served; err != nil {
				f.t.Error(err)
			}
		})
		f.gates = append(f.gates, &gate{n, "http://" + listener.Addr().String()})
	})
}

// part runs what starts a part of the whole, so that a CPU profile can tell it
// from others: whatever it starts inherits the label.
func part(name string, start func()) {
	pprof.Do(context.Background(), pprof.Labels("part", name), func(context.Context) { start() })
}
