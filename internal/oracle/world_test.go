package oracle_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/oracle"
	"github.com/sendgate/sendgate/node"
)

// heardLimit bounds the wait for a change to get from one gate to the other.
// A machine that is busy with other tests may take a while.
const heardLimit = 30 * time.Second

// world is two gates over one Redis and one store, and the oracle beside them.
// Many histories share one, each with users of its own; its clock, which is
// that of both gates and of Redis, only goes forward.
type world struct {
	t       *testing.T
	redis   *miniredis.Miniredis
	gates   [2]*node.Node
	catalog atomic.Pointer[sendgate.Catalog] // that a reload finds
	micros  atomic.Int64                     // of the clock, since 1970
	oracle  *oracle.Oracle
	zones   *oracle.Zones
	rand    *rand.Rand
	told    []line         // what happened in this history, for a failure
	number  int            // of this history
	saw     map[string]int // how often which verdicts, reasons and refusals came
}

func newWorld(t *testing.T, zones *oracle.Zones, r *rand.Rand) *world {
	t.Helper()
	w := &world{t: t, redis: miniredis.NewMiniRedis(), zones: zones, rand: r, saw: map[string]int{}}
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(4 * 365 * 24 * time.Hour))))
	w.micros.Store(start.UnixMicro())
	w.redis.SetTime(start.Truncate(time.Microsecond))
	t.Cleanup(w.redis.Close)

	if err := w.redis.Start(); err != nil {
		t.Fatal(err)
	}
	// As the product connects, but with more patience: a machine that stands
	// still for seconds is no Redis that is down.
	client := redis.NewClient(&redis.Options{
		Addr: w.redis.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: heardLimit, ReadTimeout: heardLimit, WriteTimeout: heardLimit, PoolSize: 16, PoolTimeout: heardLimit,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = client.Close() })
	first := handMade[0]
	w.oracle = oracle.New(first, zones)
	w.catalog.Store(compile(t, first))
	store := newMapStore()
	for i := range w.gates {
		gate, err := node.Start(t.Context(), node.Options{
			Catalog: w.catalog.Load(), Reload: func() (*sendgate.Catalog, error) { return w.catalog.Load(), nil },
			Redis: client, Store: store, Namespace: "oracle", Partitions: 4,
			RedisLimit: heardLimit, StoreLimit: heardLimit, Log: slog.New(slog.DiscardHandler), Now: w.exactly,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(gate.Close)
		w.gates[i] = gate
	}
	for _, gate := range w.gates {
		w.await("the gate follows the change stream", gate.Overlay().Live)
	}
	return w
}

// exactly is the clock to the microsecond, which is what gates and Redis read.
func (w *world) exactly() time.Time { return time.UnixMicro(w.micros.Load()).UTC() }

// now is the clock to the millisecond, which is what everything is told in.
func (w *world) now() time.Time { return w.exactly().Truncate(time.Millisecond) }

// moveTo sets the clock. An earlier instant leaves it where it is.
func (w *world) moveTo(to time.Time) {
	by := to.Sub(w.exactly())
	if by <= 0 {
		return
	}
	w.micros.Store(to.UnixMicro())
	w.redis.SetTime(w.exactly())
	w.redis.FastForward(by)
	w.tell("clock   %s", to.Format(stamp))
}

// await waits for what comes within moments, and fails if it does not.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	limit := time.NewTimer(heardLimit)
	defer limit.Stop()
	again := time.NewTicker(50 * time.Microsecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-limit.C:
			w.fail("not within %s: %s", heardLimit, what)
		}
	}
}

// promptly is how fast a change gets through if nothing is in its way. A
// request that took longer may have been cut off on a busy machine, and what
// carries it on then goes by a clock that stands still here.
const promptly = 200 * time.Millisecond

// hear waits until a gate knows of a user's latest change. A change that does
// not arrive is asked for again, by one that changes nothing.
func (w *world) hear(gate int, user string) {
	w.t.Helper()
	want := int64(w.oracle.Revision(user))
	if want == 0 {
		return
	}
	last := sendgate.SystemClock()
	w.await("the other gate hears of a change", func() bool {
		known, _, ok := w.gates[gate].Overlay().Consent(sendgate.UserID(user))
		if ok && known.Revision >= want {
			return true
		}
		if sendgate.SystemClock().Sub(last) > promptly {
			w.call(1-gate, "PATCH", path(user), "{}")
			last = sendgate.SystemClock()
		}
		return false
	})
}

// setCatalog has both gates read a catalog again.
func (w *world) setCatalog(c oracle.Catalog) {
	w.t.Helper()
	w.catalog.Store(compile(w.t, c))
	for _, gate := range w.gates {
		gate.Reload()
	}
	w.oracle.SetCatalog(c)
}

// answer is what came back over HTTP.
type answer struct {
	status int
	body   []byte
	etag   string
	took   time.Duration
}

// call makes one request of one gate. A body is text as it is, or anything
// that can be written as JSON.
func (w *world) call(gate int, method, path string, body any, header ...string) answer {
	w.t.Helper()
	text, ready := body.(string)
	if !ready && body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		text = string(data)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, bytes.NewReader([]byte(text)))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec, start := httptest.NewRecorder(), sendgate.SystemClock()
	w.gates[gate].ServeHTTP(rec, r)
	w.tell("gate %d  %s %s %s %v -> %d %s", gate, method, path, text, header, rec.Code, bytes.TrimSpace(rec.Body.Bytes()))
	return answer{rec.Code, rec.Body.Bytes(), rec.Header().Get("ETag"), sendgate.SystemClock().Sub(start)}
}
