package feed_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/redisconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// follow runs a follower until the test ends, and waits until it is live.
func follow(t *testing.T, client redis.UniversalClient) *gate {
	t.Helper()
	g := startFollower(t, client)
	redistest.Until(t, "the follower is live", g.Live)
	return g
}

func startFollower(t *testing.T, client redis.UniversalClient) *gate {
	t.Helper()
	g := &gate{Overlay: bloom.NewOverlay(1 << 20)}
	f := feed.NewFollower(feed.FollowerOptions{
		Client: client, Space: newSpace(t), Sink: g, Log: slog.New(slog.NewTextHandler(g, nil)), Now: sendgate.SystemClock,
		Snapshot: func(generation int64) { g.event(fmt.Sprint("filter ", generation)) },
		Lag: func(lag time.Duration) {
			if g.lags++; lag < 0 {
				t.Errorf("a lag of %v", lag)
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if g.Live() {
			t.Error("live after its end")
		}
	})
	return g
}

func TestFollowersHearEveryChange(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		d.announce("before", 1)
		one, other := follow(t, d.client), follow(t, d.client)
		for i := range 40 { // in a cluster, of every master
			d.announce(fmt.Sprint("u", i), 2)
		}
		d.announce("u0", 3)
		d.announce("u0", 3)
		d.announce("u0", 2)
		for _, g := range []*gate{one, other} {
			g.learns(t, "u0", 3)
			for i := 1; i < 40; i++ {
				g.learns(t, fmt.Sprint("u", i), 2)
			}
			g.knowsPlaces(d)
			if _, _, ok := g.Consent("before"); ok {
				t.Error("the past was replayed to a gate that has no snapshot to replay it on")
			}
			if n := g.happened("gap"); n != 1 { // the one at the beginning
				t.Errorf("%d gaps", n)
			}
		}
	})
}

// What a gate has learned from its own changes before it followed may have
// been changed elsewhere since, unheard.
func TestWhatWasLearnedBeforeIsNoLongerExact(t *testing.T) {
	d := newDesk(t, redistest.Start(t).Client())
	g := &gate{Overlay: bloom.NewOverlay(10)}
	g.Overlay.Apply(consentOf("u", 1), sendgate.Place{})
	d.announce("u", 2)
	f := feed.NewFollower(feed.FollowerOptions{
		Client: d.client, Space: newSpace(t), Sink: g, Log: slog.New(slog.DiscardHandler), Now: sendgate.SystemClock, Lag: func(time.Duration) {},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	defer running.Wait()
	defer cancel()
	redistest.Until(t, "the follower is live", g.Live)
	if _, exact, ok := g.Consent("u"); exact || !ok {
		t.Errorf("exact %v, known %v", exact, ok)
	}
}

func TestTheFollowerEndsAtOnce(t *testing.T) {
	server := redistest.Start(t)
	p := startProxy(t, server.Addr())
	client := through(t, p)
	f := feed.NewFollower(feed.FollowerOptions{
		Client: client, Space: newSpace(t), Sink: &gate{Overlay: bloom.NewOverlay(10)}, Log: slog.New(slog.DiscardHandler),
		Now: sendgate.SystemClock, Lag: func(time.Duration) {},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	f.Run(ctx)
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("it ended %v after its context", took-300*time.Millisecond)
	}
}

func through(t *testing.T, p *proxy) redis.UniversalClient {
	t.Helper()
	client, err := redisconn.Open(redisconn.Options{Addrs: []string{p.addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// away is one way to lose a follower's connection, and to get it back.
type away struct {
	name       string
	begin, end func(t *testing.T, d *desk, p *proxy)
}

var faults = []away{
	{"refused", func(_ *testing.T, _ *desk, p *proxy) { p.refuse() }, func(_ *testing.T, _ *desk, p *proxy) { p.heal() }},
	{"black hole", func(_ *testing.T, _ *desk, p *proxy) { p.blackHole() }, func(_ *testing.T, _ *desk, p *proxy) { p.heal() }},
	{"black hole, then reset", func(_ *testing.T, _ *desk, p *proxy) { p.blackHole() }, func(_ *testing.T, _ *desk, p *proxy) {
		p.reset()
		p.heal()
	}},
}

// However the connection is lost, the follower notices, knows everything once
// it is back, in order, and has missed nothing.
func TestAFollowerThatWasAwayKnowsEverything(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			server := redistest.Start(t)
			d, p := newDesk(t, server.Client()), startProxy(t, server.Addr())
			g := follow(t, through(t, p))
			d.announce("u", 1)
			g.learns(t, "u", 1)

			began := time.Now()
			fault.begin(t, d, p)
			redistest.Until(t, "the follower has noticed", func() bool { return !g.Live() })
			t.Logf("noticed after %v", time.Since(began).Round(time.Millisecond))
			if g.knows("u", 1) {
				t.Error("what may be out of date is exact")
			}
			const many = 1200 // of one partition, more than two pages
			for revision := int64(2); revision <= many; revision++ {
				d.announce("u", revision)
			}
			for i := range 2000 {
				d.announce(fmt.Sprint("u", i), 1)
			}
			began = time.Now()
			fault.end(t, d, p)
			g.learns(t, "u", many)
			for i := range 2000 {
				g.learns(t, fmt.Sprint("u", i), 1)
			}
			t.Logf("all is known after %v", time.Since(began).Round(time.Millisecond))
			heard := g.of("u")
			if !slices.IsSorted(heard) || len(slices.Compact(slices.Clone(heard))) != many {
				t.Errorf("%d revisions were heard, in order: %v", len(heard), slices.IsSorted(heard))
			}
			if n := g.happened("gap"); n != 1 {
				t.Errorf("%d gaps", n)
			}
		})
	}
}

func TestASubscriberThatIsKilledComesBack(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		if t.Name() == "TestASubscriberThatIsKilledComesBack/embedded" {
			return // it has no CLIENT KILL
		}
		g := follow(t, d.client)
		kill := func(ctx context.Context, node *redis.Client) error {
			return node.ClientKillByFilter(ctx, "TYPE", "pubsub").Err()
		}
		for revision := int64(1); revision <= 5; revision++ {
			var err error
			if cluster, ok := d.client.(*redis.ClusterClient); ok {
				err = cluster.ForEachMaster(t.Context(), kill)
			} else {
				err = kill(t.Context(), d.client.(*redis.Client))
			}
			if err != nil {
				t.Fatal(err)
			}
			d.announce("u", revision)
			redistest.Until(t, "the follower was away", func() bool { return g.happened("away") == int(revision) })
			g.learns(t, "u", revision)
		}
		if n := g.happened("gap"); n != 1 {
			t.Errorf("%d gaps", n)
		}
	})
}

// A message that arrives in two halves with a long silence between them is one
// message, and the connection is as good as before.
func TestAMessageHeldUpInItsMiddle(t *testing.T) {
	server := redistest.Start(t)
	d, p := newDesk(t, server.Client()), startProxy(t, server.Addr())
	g := follow(t, through(t, p))
	p.splitAt(`"u":"halved"`)
	d.announce("halved", 1)
	d.announce("next", 1)
	g.learns(t, "halved", 1)
	g.learns(t, "next", 1)
	if n := g.happened("away"); n != 0 {
		t.Errorf("away %d times", n)
	}
}
