package freqcap_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/redisconn"
)

// lossyConn loses the answer to a script, once it is armed: the script has run,
// and the connection breaks.
type lossyConn struct {
	net.Conn
	armed   *atomic.Bool
	carries atomic.Bool // a script has been sent and not been answered
}

func (c *lossyConn) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "evalsha") {
		c.carries.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *lossyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.carries.Swap(false) && c.armed.Swap(false) {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}

// lossy opens a client like another one, over connections that lose an answer
// when armed.
func lossy(t *testing.T, like redis.UniversalClient, armed *atomic.Bool) redis.UniversalClient {
	t.Helper()
	return over(t, like, func(conn net.Conn) net.Conn { return &lossyConn{Conn: conn, armed: armed} })
}

// over opens a client like another one, over connections of another kind.
func over(t *testing.T, like redis.UniversalClient, kind func(net.Conn) net.Conn) redis.UniversalClient {
	t.Helper()
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return kind(conn), nil
	}
	var client redis.UniversalClient
	switch like := like.(type) {
	case *redis.Client:
		o := *like.Options()
		o.Dialer, o.MaxRetries = dial, -1 // the options of a client say 0 where it was given -1
		client = redis.NewClient(&o)
	case *redis.ClusterClient:
		o := *like.Options()
		o.Dialer, o.MaxRetries = dial, -1 // the options of a client say 0 where it was given -1
		client = redis.NewClusterClient(&o)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// scriptRuns counts what a Redis, or the masters of a cluster, were sent.
func scriptRuns(t *testing.T, client redis.UniversalClient) (runs int) {
	t.Helper()
	var mu sync.Mutex
	count := func(ctx context.Context, node *redis.Client) error {
		info, err := node.Info(ctx, "commandstats").Result()
		mu.Lock()
		defer mu.Unlock()
		for _, line := range strings.Split(info, "\r\n") {
			var calls int
			if _, err := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d", &calls); err == nil {
				runs += calls
			}
			if _, err := fmt.Sscanf(line, "cmdstat_eval:calls=%d", &calls); err == nil {
				runs += calls
			}
		}
		return err
	}
	var err error
	switch c := client.(type) {
	case *redis.Client:
		err = count(context.Background(), c)
	case *redis.ClusterClient:
		err = c.ForEachMaster(context.Background(), count)
	}
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func TestALostReplyIsNotSentAgainAndCostsOneSlot(t *testing.T) {
	t.Parallel()
	for _, e := range []engine{single, cluster} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			client := e.open(t)
			b, two := onRedisClock(t, lossy(t, client, &armed)), capOf(time.Hour, 2)
			b.charge("u", "warm", capOf(time.Hour, 1, "channel", "push"))
			before := scriptRuns(t, client)
			armed.Store(true)
			if a := b.Judge(context.Background(), asksOf("u", 1, two), 0)[0]; a.Err == nil || a.Admitted {
				t.Fatalf("the answer was not lost: %+v", a)
			}
			if runs := scriptRuns(t, client) - before; runs != 1 {
				t.Errorf("sent %d times", runs)
			}
			if n := b.slots("u", time.Now().UnixMilli()); n != 2 { // the one before, too
				t.Fatalf("the script has not run: %d entries", n)
			}
			for range 3 {
				if a := b.Judge(context.Background(), asksOf("u", 1, two), 0)[0]; !a.Admitted || a.Caps[0].Used != 1 {
					t.Errorf("asked again: %+v", a)
				}
			}
		})
	}
}

func testFlushedScriptsUnderLoad(t *testing.T, client redis.UniversalClient) {
	b := onRedisClock(t, client)
	ctx, stop := context.WithCancel(context.Background())
	var flusher, workers sync.WaitGroup
	defer flusher.Wait()
	defer stop()
	flusher.Go(func() {
		for ctx.Err() == nil {
			if nodes, ok := client.(*redis.ClusterClient); ok {
				_ = nodes.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
					return node.ScriptFlush(ctx).Err()
				})
			} else {
				client.ScriptFlush(ctx)
			}
		}
	})
	const users, each, limit = 4, 150, 120
	for w := range users {
		workers.Go(func() {
			mine, shared := sendgate.UserID(fmt.Sprint("u", w)), sendgate.UserID("shared")
			asks := append(asksOf(mine, each, capOf(time.Hour, limit)), asksOf(shared, each, capOf(time.Hour, limit))...)
			for i, a := range b.Judge(context.Background(), asks, 0) {
				if a.Err != nil || a.Admitted != (i%each < limit) && i < each {
					t.Errorf("worker %d, ask %d: %+v", w, i, a)
					return
				}
			}
			for i := range 50 {
				if a := b.Judge(context.Background(), asksOf(mine, 1+i%3, capOf(time.Hour, limit)), 0)[0]; !a.Admitted || a.Err != nil {
					t.Errorf("worker %d, single %d: %+v", w, i, a)
				}
			}
		})
	}
	workers.Wait()
	for _, user := range []sendgate.UserID{"u0", "u1", "u2", "u3", "shared"} {
		if n := b.slots(user, time.Now().UnixMilli()); n != limit {
			t.Errorf("%s has %d slots, want %d", user, n, limit)
		}
	}
}

func TestARedisThatIsFull(t *testing.T) {
	t.Parallel()
	ctx, server, space := context.Background(), redistest.Start(t), newSpace(t)
	client, g := server.Client(), guard.New(guard.Options{Name: "caps", Limit: time.Minute, InFlight: 8, Answered: redisconn.Answered})
	b := &rig{t, client, space, freqcap.NewOnTestClock(client, space, g)}
	two := capOf(time.Minute, 2)
	for i, at := range []int64{0, 30_000} {
		b.at("u", at)
		b.charge("u", fmt.Sprint("old", i), two)
	}
	b.at("u", 80_000)
	client.Persist(ctx, b.key("u"))
	set := func(bytes string) {
		t.Helper()
		if err := client.ConfigSet(ctx, "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	for i := range 15 {
		a := b.Judge(ctx, asksOf("u", 3, two, capOf(time.Minute, 5, "channel", "push")), 0)
		if a[0].Err == nil || a[0].Admitted || !redisconn.Answered(a[0].Err) {
			t.Fatalf("ask %d: %+v", i, a[0])
		}
	}
	if g.Open() {
		t.Error("a full Redis opened the breaker")
	}
	if a := b.judge("u", "n", false, two); !a.Admitted {
		t.Errorf("a look: %+v", a)
	}
	if r := b.Settle(ctx, []sendgate.CapReport{{User: "u", NotificationID: "old1", Fate: sendgate.Failed}})[0]; r.Err == nil || !redisconn.Answered(r.Err) {
		t.Errorf("a report: %+v", r)
	}
	set("0")
	if n := b.slots("u", 0); n != 2 {
		t.Errorf("%d entries, want the 2 of before", n)
	}
	if a := b.charge("u", "n0", two); !a.Admitted || a.Caps[0].Used != 2 {
		t.Errorf("with memory again: %+v", a)
	}
}

// One error that Redis gives does not stop what else is in the list, and it
// leaves nothing half done.
func testAnErrorOfOneUserHarmsNoOther(t *testing.T, client redis.UniversalClient) {
	b, many, other := onRedisClock(t, client), capOf(time.Minute, 1000), capOf(time.Minute, 1000, "channel", "push")
	if err := client.Set(context.Background(), b.key("bad"), "no log", 0).Err(); err != nil {
		t.Fatal(err)
	}
	// The first call ends among the asks of the one; those that come after would
	// not meet the error, and yet must not be given what is not theirs.
	asks := append(asksOf("good", 60, many, other), asksOf("bad", 40, many, other)...)
	asks = append(append(asks, asksOf("bad", 70, many)...), asksOf("late", 60, many, other)...)
	for i, a := range b.Judge(context.Background(), asks, 0) {
		if bad := asks[i].User == "bad"; (a.Err != nil) != bad || a.Admitted == bad {
			t.Fatalf("ask %d of %s: %+v", i, asks[i].User, a)
		}
	}
	if is := client.Get(context.Background(), b.key("bad")).Val(); is != "no log" {
		t.Errorf("it was written: %q", is)
	}
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	client := single.open(t)
	b := onRedisClock(t, client)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i, a := range b.Judge(ctx, asksOf("u", 300, capOf(time.Minute, 1000)), 0) {
		if !errors.Is(a.Err, context.Canceled) || a.Admitted {
			t.Fatalf("ask %d: %+v", i, a)
		}
	}
	if runs := scriptRuns(t, client); runs != 0 {
		t.Errorf("%d scripts were sent", runs)
	}
}
