package node_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/node"
)

// part is the state of one part of a gate's readiness, and what it says.
func (g gate) part(name string) (state, detail string) {
	g.t.Helper()
	_, body := g.call("GET", "/readyz", "")
	parts, _ := body["parts"].([]any)
	for _, p := range parts {
		if p, _ := p.(map[string]any); p["name"] == name {
			state, _ = p["state"].(string)
			detail, _ = p["detail"].(string)
		}
	}
	return state, detail
}

// saysOfCaps waits until a gate says that caps may be evicted, and why, or that
// they may not be.
func (g gate) saysOfCaps(want ...string) {
	g.t.Helper()
	state, metric := "degraded", "1"
	if len(want) == 0 {
		state, metric = "ok", "0"
	}
	redistest.Until(g.t, fmt.Sprintf("caps_eviction is %s: %q", state, want), func() bool {
		got, detail := g.part("caps_eviction")
		for _, w := range want {
			if !strings.Contains(detail, w) {
				return false
			}
		}
		return got == state && g.metric("sendgate_caps_may_be_evicted") == metric
	})
}

func TestARedisThatMayEvictCaps(t *testing.T) {
	server, other, store := redistest.Start(t), redistest.Start(t), openStore(t)
	client := server.Client()
	set := func(policy, memory string) {
		t.Helper()
		for name, value := range map[string]string{"maxmemory-policy": policy, "maxmemory": memory} {
			if err := client.ConfigSet(t.Context(), name, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	const memory = "104857600"
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			set(policy, memory)
			startGate(t, client, store, nil).saysOfCaps("redis evicts", "maxmemory-policy "+policy, "maxmemory "+memory, "set maxmemory-policy noeviction")
			startGate(t, other.Client(), store, func(o *node.Options) { o.CapsRedis = client }).saysOfCaps("caps_redis evicts", policy)
			// Records may be evicted, and without a limit nothing is.
			startGate(t, client, store, func(o *node.Options) { o.CapsRedis = other.Client() }).saysOfCaps()
			set(policy, "0")
			startGate(t, client, store, nil).saysOfCaps()
		})
	}
	set("noeviction", memory)
	startGate(t, client, store, nil).saysOfCaps()
}

func TestAMasterThatMayEvictCaps(t *testing.T) {
	c, store := redistest.StartCluster(t), openStore(t)
	startGate(t, c.Client(), store, nil).saysOfCaps()
	m := c.Masters()[1]
	for name, value := range map[string]string{"maxmemory-policy": "volatile-ttl", "maxmemory": "104857600"} {
		if err := m.Client().ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	startGate(t, c.Client(), store, nil).saysOfCaps("redis evicts", m.Addr()+": maxmemory-policy volatile-ttl")
}

// TestAPolicyThatCannotBeRead has providers that allow one way or none.
func TestAPolicyThatCannotBeRead(t *testing.T) {
	for rules, want := range map[string]string{
		"+@all -config": "maxmemory-policy allkeys-lru", "+@all -info": "maxmemory-policy allkeys-lru", "+@all -info -config": "could not be read (NOPERM",
	} {
		t.Run(rules, func(t *testing.T) {
			server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
			client := asUser(t, server, "~*", "&*", rules)
			startGate(t, client, openStore(t), nil).saysOfCaps(want, "noeviction")
		})
	}
}

// TestARedisThatComesLater is down when the gate starts.
func TestARedisThatComesLater(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	g := startGate(t, server.Client(), openStore(t), nil)
	g.saysOfCaps("could not be read", "refused")
	server.Restart()
	g.saysOfCaps()
	server.Kill() // what it has told stands
	g.expect("a check", "suppress unverifiable", func() string { return g.check("n", "u", "promotions") })
	g.saysOfCaps()
}

// TestCapsInARedisThatIsFull takes no charge: the category says what follows,
// and who has opted out is left alone all the same.
func TestCapsInARedisThatIsFull(t *testing.T) {
	for _, beside := range []bool{true, false} {
		t.Run(fmt.Sprint("caps beside the records: ", beside), func(t *testing.T) {
			client, caps, store := redistest.Start(t).Client(), redistest.Start(t).Client(), openStore(t)
			catalog, err := catalogfile.Parse("t", []byte(strings.Replace(string(catalogfile.SampleYAML()), "class: transactional",
				"class: transactional\n    caps: [{by: [], window: 24h, limit: 5}]", 1)))
			if err != nil {
				t.Fatal(err)
			}
			full := client
			g := startGate(t, client, store, func(o *node.Options) {
				o.Catalog = catalog
				if !beside {
					o.CapsRedis, full = caps, caps
				}
			}).follows()
			for _, topic := range []string{"promotions", "order_updates"} {
				g.set("before", topic, false)
				g.set("in", topic, true)
			}
			if err := full.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
				t.Fatal(err)
			}
			for _, topic := range []string{"promotions", "order_updates"} {
				g.set("meanwhile", topic, false)
			}
			for _, c := range []struct{ user, topic, want string }{
				{"in", "promotions", "suppress unverifiable"},
				{"in", "order_updates", "allow unverified"},
				{"new", "promotions", "suppress unverifiable"},
				{"new", "order_updates", "allow unverified"},
				{"before", "promotions", "suppress opted_out"},
				{"before", "order_updates", "suppress opted_out"},
				{"meanwhile", "promotions", "suppress opted_out"},
				{"meanwhile", "order_updates", "suppress opted_out"},
				{"in", "security_alerts", "allow essential"},
			} {
				for i := range 15 { // more than open a breaker
					g.expect(c.user+", "+c.topic, c.want, func() string { return g.check(fmt.Sprint("n", i), c.user, c.topic) })
				}
			}
			if n := full.Keys(t.Context(), "*cap:*").Val(); len(n) != 0 {
				t.Errorf("charged: %q", n)
			}
			if err := full.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
				t.Fatal(err)
			}
			g.expect("with room again", "allow opted_in", func() string { return g.check("n", "in", "promotions") })
		})
	}
}
