package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

func TestTheFilterAnswersInProcess(t *testing.T) {
	client, store, p := redistest.Start(t).Client(), openStore(t), newPlace(t)
	for i := range 50 {
		stored(t, store, fmt.Sprintf("out%d", i), push("promotions", false))
	}
	stored(t, store, "verify", push("order_updates", false))
	stored(t, store, "in", sendgate.Settings{{Topic: "newsletter", Channel: "sms"}: true})
	stored(t, store, "held", nil, sendgate.Hold{Source: sendgate.SourceUser, Reason: prefs.ReasonUserRequested, RetainEssential: true})
	stored(t, store, "gone", nil, sendgate.Hold{Source: sendgate.SourceUser, Reason: prefs.ReasonAccountDeletion})
	generation := once(t, newBuilder(t, client, store, p))
	a := startGate(t, client, store, p.filtered).follows()
	a.uses(generation)
	b := startGate(t, client, store, p.filtered).follows()
	b.uses(generation)
	redistest.Until(t, "the gate is ready", b.isReady)
	for _, c := range []struct{ user, topic, channel, want, inProcess string }{
		{"out7", "promotions", "push", "suppress opted_out filter false", "yes"},
		{"out7", "promotions", "email", "allow default_on caps true", "no"},
		{"verify", "order_updates", "push", "suppress opted_out preference true", "no"},
		{"in", "newsletter", "sms", "allow opted_in caps true", "no"},
		{"other", "newsletter", "sms", "suppress default_off filter true", "yes"},
		{"held", "promotions", "push", "suppress global_unsubscribe global false", "yes"},
		{"held", "order_updates", "push", "suppress global_unsubscribe preference true", "no"},
		{"held", "security_alerts", "push", "allow essential global true", "yes"},
		{"gone", "security_alerts", "push", "suppress global_unsubscribe global true", "no"},
		{"other", "security_alerts", "push", "allow essential global true", "yes"},
		{"other", "promotions", "push", "allow default_on caps true", "no"},
	} {
		before := b.metric("sendgate_checks_in_process_total")
		b.expect(c.user+" "+c.topic+" "+c.channel, c.want, func() string { return b.answer(c.user, c.topic, c.channel) })
		if inProcess := b.metric("sendgate_checks_in_process_total") != before; inProcess != (c.inProcess == "yes") {
			t.Errorf("%s %s: answered in process: %t", c.user, c.topic, inProcess)
		}
	}
	// Out, and in again, although the filter still says otherwise: everywhere.
	b.set("out7", "promotions", true)
	b.expect("where it was made", "allow opted_in caps true", func() string { return b.answer("out7", "promotions", "push") })
	redistest.Until(t, "elsewhere", func() bool { return a.answer("out7", "promotions", "push") == "allow opted_in caps true" })
	// And to one that starts after the change was made.
	c := startGate(t, client, store, p.filtered).follows()
	c.uses(generation)
	c.expect("later", "allow opted_in caps true", func() string { return c.answer("out7", "promotions", "push") })
}

// slowStore lets a scan wait at a record.
type slowStore struct {
	prefs.Store
	at      sendgate.UserID
	reached chan struct{}
	goOn    chan struct{}
	fail    error
}

func (s *slowStore) Scan(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
	return s.Store.Scan(ctx, segment, segments, func(r *prefs.Record) error {
		if err := each(r); err != nil {
			return err
		}
		if r.User == s.at { // it has been read
			close(s.reached)
			<-s.goOn
			return s.fail
		}
		return nil
	})
}

// TestChangesDuringAScan has users change whose records were read already.
func TestChangesDuringAScan(t *testing.T) {
	client, store, p := redistest.Start(t).Client(), openStore(t), newPlace(t)
	a := startGate(t, client, store, p.filtered).follows()
	a.set("goes-out", "promotions", true)
	a.set("comes-in", "promotions", false)
	slow := &slowStore{Store: store, at: "goes-out", reached: make(chan struct{}), goOn: make(chan struct{})}
	built := make(chan int64)
	go func() { built <- once(t, newBuilder(t, client, slow, p)) }()
	<-slow.reached
	a.set("goes-out", "promotions", false)
	a.set("comes-in", "promotions", true)
	close(slow.goOn)
	generation := <-built
	b := startGate(t, client, store, p.filtered).follows() // knows what the snapshot and the streams say
	for _, g := range []gate{a, b} {
		g.uses(generation)
		g.expect("went out", "suppress opted_out filter true", func() string { return g.answer("goes-out", "promotions", "push") })
		g.expect("came in", "allow opted_in caps true", func() string { return g.answer("comes-in", "promotions", "push") })
	}
}

func TestAScanThatFailsPublishesNothing(t *testing.T) {
	client, store, p := redistest.Start(t).Client(), openStore(t), newPlace(t)
	a := startGate(t, client, store, p.filtered).follows()
	for i := range 20 {
		a.set(fmt.Sprintf("u%d", i), "promotions", false)
	}
	broken := errors.New("the table is gone")
	slow := &slowStore{Store: store, at: "u7", reached: make(chan struct{}), goOn: make(chan struct{}), fail: broken}
	close(slow.goOn)
	if _, err := newBuilder(t, client, slow, p).Once(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "segment") {
		t.Errorf("%v", err)
	}
	if published, err := p.Generations(t.Context()); err != nil || len(published) != 0 {
		t.Errorf("%v is published: %v", published, err)
	}
}

// TestSnapshotsThatAreRefused publishes what a gate must not use. The filter in
// use stays, and the log, readiness and a metric say why.
func TestSnapshotsThatAreRefused(t *testing.T) {
	client, store, p := redistest.Start(t).Client(), openStore(t), newPlace(t)
	g := startGate(t, client, store, p.filtered).follows()
	g.set("out", "promotions", false)
	builder := newBuilder(t, client, store, p)
	good := once(t, builder)
	g.uses(good)
	file, err := os.ReadFile(p.file(good))
	if err != nil {
		t.Fatal(err)
	}
	second := once(t, newBuilder(t, client, store, p))
	g.uses(second)
	generation := second
	damaged := func(change func([]byte) []byte) []byte { return change(append([]byte(nil), file...)) }
	for i, c := range []struct {
		what, reason string
		file         []byte
	}{
		{"an older format", "format is version 0", damaged(func(b []byte) []byte { b[8] = 0; return b })},
		{"cut off", "cut off", file[:len(file)-8]},
		{"one bit", "damaged", damaged(func(b []byte) []byte { b[len(b)-1] ^= 1; return b })},
		{"an older one under a new name", fmt.Sprintf("generation %d inside", good), file},
		{"another namespace", `namespace \"other\"`, otherNamespace(t, client, store)},
	} {
		generation++
		if err := p.Publish(t.Context(), generation, func(w io.Writer) error { _, err := w.Write(c.file); return err }); err != nil {
			t.Fatal(err)
		}
		redistest.Until(t, c.what+" is refused", func() bool {
			w := httptest.NewRecorder()
			g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			return w.Code == http.StatusOK && strings.Contains(w.Body.String(), c.reason) && strings.Contains(w.Body.String(), fmt.Sprint("generation ", generation))
		})
		if got := g.metric(`sendgate_filter_loads_total{result="refused"}`); got != fmt.Sprint(i+1) {
			t.Errorf("%s: %s were refused", c.what, got)
		}
		if got := g.metric("sendgate_filter_generation"); got != fmt.Sprintf("%g", float64(second)) {
			t.Errorf("%s: generation %s is in use", c.what, got)
		}
	}
	// Older than the one in use, with nothing newer about.
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(t.Context(), good, func(w io.Writer) error { _, err := w.Write(file); return err }); err != nil {
		t.Fatal(err)
	}
	redistest.Until(t, "an older one is refused", func() bool {
		_, body := g.call(http.MethodGet, "/readyz", "")
		return strings.Contains(fmt.Sprint(body), "older than")
	})
	g.expect("the filter in use", "suppress opted_out filter true", func() string { return g.answer("out", "promotions", "push") })
	// A new one, and all is well again. Generations are seconds.
	redistest.Until(t, "the second is over", func() bool { return time.Now().Unix() > second })
	g.uses(once(t, builder))
	redistest.Until(t, "readiness says so", func() bool {
		_, body := g.call(http.MethodGet, "/readyz", "")
		return body["status"] == "ok"
	})
}

// otherNamespace is a snapshot of another installation.
func otherNamespace(t *testing.T, client redis.UniversalClient, store prefs.Store) []byte {
	t.Helper()
	p := newPlace(t)
	space, err := keyspace.New("t", 16)
	if err != nil {
		t.Fatal(err)
	}
	generation := once(t, rebuild.New(rebuild.Options{
		Store: store, Streams: feed.NewPublisher(client, space, sendgate.SystemClock), Archive: p, Namespace: "other",
		Catalog: func() (*sendgate.Catalog, error) { return catalogfile.Sample(), nil },
		Memory:  1 << 20, MaxFalsePositive: 0.001, AimFalsePositive: 1e-9, Segments: 1, Keep: 3, Progress: silent{}, Now: time.Now,
	}))
	file, err := os.ReadFile(p.file(generation))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAGapIsCovered loses the streams: what the filter rejects is verified
// until a new one is built.
func TestAGapIsCovered(t *testing.T) {
	server := redistest.Start(t)
	client, store, p := server.Client(), openStore(t), newPlace(t)
	stored(t, store, "out", push("promotions", false))
	builder := newBuilder(t, client, store, p)
	generation := once(t, builder)
	g := startGate(t, client, store, p.filtered).follows()
	g.uses(generation)
	g.expect("before", "suppress opted_out filter false", func() string { return g.answer("out", "promotions", "push") })
	client.FlushAll(t.Context())
	redistest.Until(t, "rejections are verified", func() bool { return g.metric("sendgate_filter_verifying") == "1" })
	g.expect("in the gap", "suppress opted_out preference true", func() string { return g.answer("out", "promotions", "push") })
	g.uses(once(t, builder))
	g.expect("after the next rebuild", "suppress opted_out filter false", func() string { return g.answer("out", "promotions", "push") })
	// With Redis gone, what only the filter says is obeyed where the category
	// would not send without knowing.
	server.Kill()
	redistest.Until(t, "Redis is missed", func() bool {
		return g.answer("out", "promotions", "push") == "suppress opted_out preference false"
	})
	g.expect("nobody's opt-out", "suppress unverifiable preference true", func() string { return g.answer("other", "promotions", "push") })
}
