package node_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs"
)

// roomy is a catalog of one topic whose caps are not full in a test.
const roomy = `
default_timezone: UTC
channels: [push]
categories:
  m:
    class: marketing
    caps: [{kind: rolling, by: [category], window: 24h, limit: 10000}]
topics:
  t: {category: m}
`

func startRoomy(t *testing.T, client redis.UniversalClient) (gates [2]gate) {
	t.Helper()
	catalog, err := catalogfile.Parse("roomy", []byte(roomy))
	if err != nil {
		t.Fatal(err)
	}
	store := openStore(t)
	for i := range gates {
		gates[i] = startGate(t, client, store, func(o *node.Options) { o.Catalog = catalog }).follows()
	}
	return gates
}

// looked is how many looks into the record cache had an outcome.
func (g gate) looked(outcome string) (n int) {
	g.t.Helper()
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if rest, ok := strings.CutPrefix(line, `sendgate_record_cache_total{outcome="`+outcome+`"} `); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				g.t.Error(err)
			}
		}
	}
	return n
}

// checker asks a gate about a user, under a new id.
type checker func(g gate, user string) string

// whileAsked has every one of so many people edited by somebody, all at once, while
// two gates are asked about all of them without a pause.
func whileAsked(gates [2]gate, people int, edit func(user string, check checker)) {
	var id atomic.Int64
	check := func(g gate, user string) string { return g.check(fmt.Sprint("n", id.Add(1)), user, "t") }
	var done atomic.Bool
	var askers, editors sync.WaitGroup
	for i := range 4 {
		askers.Go(func() {
			for !done.Load() {
				check(gates[i%2], fmt.Sprint("u", id.Load()%int64(people)))
			}
		})
	}
	for i := range people {
		editors.Go(func() { edit(fmt.Sprint("u", i), check) })
	}
	editors.Wait()
	done.Store(true)
	askers.Wait()
}

// verdictIf is what a gate says of somebody whose own setting is on or off.
func verdictIf(on bool) string {
	if on {
		return "allow opted_in"
	}
	return "suppress opted_out"
}

// TestEditsAgainstWhatIsRemembered changes people's minds at one gate while both
// are asked about them without a pause. Whatever a gate remembers, a check that
// begins after an edit was acknowledged obeys it.
func TestEditsAgainstWhatIsRemembered(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"single": redistest.Start(t).Client(), "cluster": redistest.StartCluster(t).Client()} {
		t.Run(name, func(t *testing.T) {
			gates := startRoomy(t, client)
			whileAsked(gates, 5, func(user string, check checker) {
				for round := range 25 {
					on := round%2 == 1
					gates[round/2%2].set(user, "t", on)
					for n := range 4 {
						// An opt-in is obeyed where a check reaches the record. An opt-out
						// that the other gate has in its memory yet does not.
						got := check(gates[n%2], user)
						if want := verdictIf(on); got != want && (!on || got != verdictIf(false)) {
							t.Errorf("%s at gate %d, %d checks after it was acknowledged: %s, not %s", user, n%2, n, got, want)
						}
					}
				}
			})
			held, refuted := 0, 0
			for _, g := range gates {
				held, refuted = held+g.looked("held"), refuted+g.looked("refuted")
			}
			if held == 0 {
				t.Error("nothing of what was remembered ever held")
			}
			t.Logf("held %d times, refuted %d times", held, refuted)
		})
	}
}

// TestARecordThatOnlyRedisHas has records change in Redis behind the gates' backs,
// as by another gate whose message is late, while they are asked without a pause:
// the next check at either gate goes by what Redis holds.
func TestARecordThatOnlyRedisHas(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"single": redistest.Start(t).Client(), "embedded": redistest.Embedded(t), "cluster": redistest.StartCluster(t).Client(),
	} {
		t.Run(name, func(t *testing.T) {
			gates := startRoomy(t, client)
			space, err := keyspace.New("t", 16)
			if err != nil {
				t.Fatal(err)
			}
			whileAsked(gates, 3, func(user string, check checker) {
				for round := range 60 {
					on := round%2 == 1
					p := sendgate.Preferences{Revision: int64(round + 1), Settings: sendgate.Settings{{Topic: "t", Channel: "push"}: on}}
					body, err := prefs.EncodePreferences(&p)
					if err == nil {
						err = client.Set(t.Context(), space.Record(sendgate.UserID(user)), keyspace.RecordValue(p.Revision, body), time.Minute).Err()
					}
					if err != nil {
						t.Error(err)
					}
					for n := range 4 {
						if got, want := check(gates[n%2], user), verdictIf(on); got != want {
							t.Errorf("%s at gate %d, revision %d: %s, not %s", user, n%2, p.Revision, got, want)
						}
					}
				}
			})
			if held, refuted := gates[0].looked("held"), gates[0].looked("refuted"); held == 0 || refuted == 0 {
				t.Errorf("held %d times, refuted %d times", held, refuted)
			}
		})
	}
}

// TestWhatIsRememberedIsNoRecord has a record that is remembered leave Redis, and
// Redis go: a check goes the way of one that remembers nothing.
func TestWhatIsRememberedIsNoRecord(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	gates := startRoomy(t, client)
	g := gates[0]
	warm := func() {
		t.Helper()
		held := g.looked("held")
		redistest.Until(t, "it is remembered", func() bool {
			g.expect("a check", "allow default_on", func() string { return g.check("n", "u", "t") })
			return g.looked("held") > held
		})
	}
	warm()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	g.expect("after a flush", "allow default_on", func() string { return g.check("n1", "u", "t") })
	if n := g.looked("refuted"); n != 1 {
		t.Errorf("refuted %d times", n)
	}
	warm()
	server.Kill()
	if got := g.check("n2", "u", "t"); got != "suppress unverifiable" {
		t.Errorf("without Redis: %s", got)
	}
	server.Restart()
	redistest.Until(t, "Redis is asked again", func() bool { return g.check("n3", "u", "t") == "allow default_on" })
}

// TestCapsOfTheirOwnProveNothing has caps in another Redis, which has no records.
func TestCapsOfTheirOwnProveNothing(t *testing.T) {
	client, caps := redistest.Start(t).Client(), redistest.Start(t).Client()
	g := startGate(t, client, openStore(t), func(o *node.Options) { o.CapsRedis = caps }).follows()
	for i := range 5 {
		g.expect("a check", "allow default_on", func() string { return g.check(fmt.Sprint("n", i), "u", "promotions") })
	}
	if n := g.looked("held") + g.looked("refuted"); n != 0 || g.looked("hit") < 3 {
		t.Errorf("%d presumptions, %d hits", n, g.looked("hit"))
	}
}

// BenchmarkPresumption has one user's checks, with and without what is remembered.
func BenchmarkPresumption(b *testing.B) {
	server := redistest.Start(b)
	catalog, err := catalogfile.Parse("roomy", []byte(roomy))
	if err != nil {
		b.Fatal(err)
	}
	for name, caps := range map[string]redis.UniversalClient{"one Redis": nil, "caps apart": server.Client()} {
		b.Run(name, func(b *testing.B) {
			g := startGate(b, server.Client(), openStore(b), func(o *node.Options) { o.Catalog, o.CapsRedis = catalog, caps }).follows()
			began := time.Now()
			for i := 0; b.Loop(); i++ {
				g.check(fmt.Sprint("n", i%20, "-", began.UnixNano()), fmt.Sprint("u", i/20%100), "t")
			}
		})
	}
}
