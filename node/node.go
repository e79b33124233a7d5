package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/api"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/decisionlog"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/metrics"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/rediscache"
	"github.com/sendgate/sendgate/prefs/redisshares"
	"github.com/sendgate/sendgate/redisconn"
)

// Calls to one dependency at most under way at once.
const (
	redisInFlight = 1024
	fillInFlight  = 32
	storeInFlight = 128
)

// fillLimit is how long a command that fills the record cache may take. No
// check waits for it.
const fillLimit = 250 * time.Millisecond

// recordMemory is how many bytes of records a gate remembers. With what they are
// decoded to it is about five times as much.
const recordMemory = 16 << 20

// Options are what a gate is made of. All but CapsRedis, Decisions, Filter, Reload
// and Now are required.
type Options struct {
	Catalog *sendgate.Catalog
	// Reload reads the catalog again; nil means that it cannot be.
	Reload    func() (*sendgate.Catalog, error)
	Redis     redis.UniversalClient
	CapsRedis redis.UniversalClient // nil: the same Redis
	// CapsEmbedded says that caps are in a Redis inside this process, which
	// evicts nothing and cannot be asked.
	CapsEmbedded bool
	Decisions    *decisionlog.Log // nil: none is kept
	Store        prefs.Store
	Filter       *Filter // nil: there is none
	Namespace    string
	Partitions   int           // of a store that is new
	Linger       time.Duration // between not being ready any more and closing the listener
	RedisLimit   time.Duration
	StoreLimit   time.Duration
	Log          *slog.Logger
	Now          func() time.Time // nil: the machine's clock
}

// Node is one running gate.
type Node struct {
	o        Options
	metrics  *metrics.Metrics
	overlay  *bloom.Overlay
	filter   *filtering // nil if there is none
	eviction *eviction  // nil if nothing is evicted
	reader   *prefs.Reader
	carrier  *prefs.Carrier
	gate     *sendgate.Gate
	limits   *limits.Follower // of single values
	server   *api.Server
	guards   []*guard.Guard
	probes   []func(context.Context) error // of the guards, in their order

	stop    context.CancelFunc
	running sync.WaitGroup

	started      time.Time
	pendingKnown atomic.Bool // every change that was pending when this gate started

	mu         sync.Mutex
	refused    error // why the last reload was refused
	pendingAge time.Duration
	sweptAt    time.Time // when what is pending was last read
	sweepFault error     // why it could not be since
}

// Start puts a gate together and starts what runs in its background. Close
// ends it. The Redis clients and the store stay the caller's to close,
// afterwards.
func Start(ctx context.Context, o Options) (*Node, error) {
	if o.Now == nil {
		o.Now = sendgate.SystemClock
	}
	layout, err := o.Store.Layout(ctx, prefs.Layout{Partitions: o.Partitions})
	if err != nil {
		return nil, fmt.Errorf("read the layout of the store: %w", err)
	}
	space, err := keyspace.New(o.Namespace, layout.Partitions)
	if err != nil {
		return nil, err
	}
	n := &Node{o: o, started: o.Now(), metrics: metrics.New(), overlay: bloom.NewOverlay(bloom.DefaultOverlaySize)}
	pings := func(c redis.UniversalClient) func(context.Context) error {
		return func(ctx context.Context) error { return c.Ping(ctx).Err() }
	}
	redisGuard := n.guard("redis", o.RedisLimit, redisInFlight, redisconn.Answered, pings(o.Redis))
	capsGuard, capsRedis := redisGuard, o.Redis
	if o.CapsRedis != nil {
		capsGuard, capsRedis = n.guard("caps_redis", o.RedisLimit, redisInFlight, redisconn.Answered, pings(o.CapsRedis)), o.CapsRedis
	}
	cache := rediscache.New(o.Redis, space)
	n.reader = prefs.NewReader(prefs.ReaderOptions{
		Cache: cache, CacheGuard: redisGuard, FillGuard: n.guard("redis_fill", fillLimit, fillInFlight, redisconn.Answered, pings(o.Redis)), Store: o.Store, StoreLimit: o.StoreLimit,
		StoreGuard: n.guard("store", max(prefs.FillLimit, o.StoreLimit), storeInFlight, nil, n.askStore),
		Observe:    func(outcome prefs.CacheOutcome) { n.metrics.CacheLooked(outcome.String()) }, Memory: recordMemory,
	})
	var memory sendgate.Memory
	if o.CapsRedis == nil { // whoever judges caps sees the records
		memory = n.reader
	}
	var filter sendgate.Filter
	if o.Filter != nil {
		n.filter = n.newFiltering(space)
		filter = n.filter.live
	}
	limitsInForce := n.readLimits(ctx)
	n.gate = sendgate.NewGate(sendgate.Options{
		Catalog: o.Catalog, Overlay: n.overlay, Filter: filter, Records: n.reader, Memory: memory, Caps: freqcap.New(capsRedis, space, capsGuard),
		Limits: limitsInForce, Observer: n.observer(), CapsBesideRecords: o.CapsRedis == nil, Now: o.Now,
	})
	n.carrier = prefs.NewCarrier(o.Store, feed.NewPublisher(o.Redis, space, o.Now))
	n.server = api.New(api.Options{
		Gate: n.gate,
		Preferences: prefs.NewService(prefs.ServiceOptions{
			Store: o.Store, Carrier: n.carrier, Overlay: n.overlay, Catalog: n.gate.Catalog, Log: o.Log, Now: o.Now,
		}),
		Limits: limits.NewService(limits.ServiceOptions{Follower: n.limits, Catalog: n.gate.Catalog, Log: o.Log}),
		Ready:  n.ready, Linger: o.Linger, Metrics: n.metrics.Handler(), Observe: n.metrics.Requested, Log: o.Log, Now: o.Now,
	})
	n.metrics.Gauge("sendgate_overlay_users", "Users whose latest state is known in process.",
		func() float64 { return float64(n.overlay.Len()) })
	n.metrics.Gauge("sendgate_overlay_dropped", "Users dropped from the overlay because it was full.",
		func() float64 { return float64(n.overlay.Dropped()) })

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	follower := feed.NewFollower(feed.FollowerOptions{
		Client: o.Redis, Space: space, Sink: n.overlay, Log: o.Log, Lag: n.metrics.Propagated, Now: o.Now,
		Snapshot: n.snapshotPublished,
	})
	sweeper := prefs.NewSweeper(prefs.SweeperOptions{
		Store: o.Store, Carrier: n.carrier, Cache: cache, Overlay: n.overlay, Shares: redisshares.New(o.Redis, space),
		Log: o.Log, Now: o.Now, Observe: n.swept,
	})
	n.running.Go(func() { follower.Run(background) })
	n.running.Go(func() { n.limits.Run(background) })
	n.running.Go(func() { n.probe(background) })
	n.running.Go(func() { sweeper.Run(background, func() { n.pendingKnown.Store(true) }) })
	if n.filter != nil {
		n.runFilter(background)
	}
	if !o.CapsEmbedded {
		n.eviction = n.newEviction(capsRedis)
		n.running.Go(func() { n.watchEviction(background) })
	}
	return n, nil
}

// snapshotPublished is told that a filter was published.
func (n *Node) snapshotPublished(int64) {
	if n.filter != nil {
		n.filter.keeper.Poke()
	}
}

func (n *Node) guard(name string, limit time.Duration, inFlight int, answered func(error) bool, probe func(context.Context) error) *guard.Guard {
	g := guard.New(guard.Options{
		Name: name, Limit: limit, InFlight: inFlight, Answered: answered, Elsewhere: redisconn.Followed,
		Changed: func(name string, open bool) {
			n.metrics.BreakerChanged(name, open)
			if open {
				n.o.Log.Warn("a dependency has failed repeatedly and is not asked for a while", "dependency", name)
			} else {
				n.o.Log.Info("a dependency is asked again", "dependency", name)
			}
		},
	})
	n.guards, n.probes = append(n.guards, g), append(n.probes, probe)
	return g
}

// Overlay is what this gate knows of users who changed lately.
func (n *Node) Overlay() *bloom.Overlay { return n.overlay }

// Serve answers over HTTP until the context ends, and finishes the requests in
// flight then.
func (n *Node) Serve(ctx context.Context, l net.Listener) error { return n.server.Serve(ctx, l) }

// ServeHTTP answers one request.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) { n.server.ServeHTTP(w, r) }

// Close ends what runs in the background and waits for it.
func (n *Node) Close() {
	n.stop()
	n.running.Wait()
	n.reader.Close()
	n.carrier.Close()
}

// Reload opens the decision log anew and reads the catalog again. One with a fault
// is refused, and the catalog in force stays.
func (n *Node) Reload() {
	n.reopenDecisions()
	if n.o.Reload == nil {
		n.o.Log.Info("there is no catalog file to read again")
		return
	}
	catalog, err := n.o.Reload()
	n.metrics.CatalogReloaded(err)
	n.mu.Lock()
	n.refused = err
	n.mu.Unlock()
	if err != nil {
		n.o.Log.Error("the catalog was refused; the one in force stays", "error", err)
		return
	}
	n.gate.SetCatalog(catalog)
	n.o.Log.Info("the catalog was read again")
}
