package node_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/redisconn"
)

// leastCommands are all that gates and a builder need to be allowed. In a
// cluster, and behind Sentinel, a little more.
const leastCommands = "+get +set +time +eval +evalsha +publish +subscribe +ping +info " +
	"+xadd +xrange +xrevrange +xinfo|stream +zadd +zrange +zremrangebyscore +pttl +pexpire"

// asUser opens a client of a user who has only some rights.
func asUser(t *testing.T, server *redistest.Server, rules ...string) redis.UniversalClient {
	t.Helper()
	addUser(t, server.Client(), rules...)
	return openAs(t, redisconn.Options{Addrs: []string{server.Addr()}}, "secret")
}

func addUser(t *testing.T, admin redis.UniversalClient, rules ...string) {
	t.Helper()
	command := []any{"ACL", "SETUSER", "gate", "on", ">secret", "resetkeys", "resetchannels", "-@all"}
	for _, rule := range strings.Fields(strings.Join(rules, " ")) {
		command = append(command, rule)
	}
	if err := admin.Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
}

func openAs(t *testing.T, o redisconn.Options, password string) redis.UniversalClient {
	t.Helper()
	o.Username, o.Password = "gate", password
	client, err := redisconn.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestTheLeastRights(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(readme)), " "), "~sendgate:* &sendgate:* "+leastCommands) {
		t.Error("README.md gives other rights")
	}
	t.Run("single", func(t *testing.T) {
		server := redistest.Start(t)
		everyPart(t, asUser(t, server, "~t:* &t:*", leastCommands), []redis.UniversalClient{server.Client()}, leastCommands)
	})
	t.Run("cluster", func(t *testing.T) {
		c := redistest.StartCluster(t)
		rights := leastCommands + " +cluster|slots +command"
		var admins []redis.UniversalClient
		for _, m := range c.Masters() {
			admins = append(admins, m.Client())
			addUser(t, m.Client(), "~t:* &t:*", rights)
		}
		everyPart(t, openAs(t, redisconn.Options{Mode: "cluster", Addrs: c.Addrs()}, "secret"), admins, rights)
	})
	t.Run("sentinel", func(t *testing.T) {
		s := redistest.StartSentinels(t, "")
		rights := leastCommands + " +role"
		addUser(t, s.Master.Client(), "~t:* &t:*", rights)
		everyPart(t, openAs(t, s.Options(), "secret"), []redis.UniversalClient{s.Master.Client()}, rights)
	})
}

// everyPart has gates and a builder do everything that they do, as a user of
// some rights: nothing is denied, and every right is used.
func everyPart(t *testing.T, client redis.UniversalClient, admins []redis.UniversalClient, rights string) {
	t.Helper()
	store, p := openStore(t), newPlace(t)
	stored(t, store, "out", push("promotions", false))
	a := startGate(t, client, store, p.filtered).follows()
	a.set("u", "promotions", true)
	generation := once(t, newBuilder(t, client, store, p))
	a.uses(generation)
	a.set("w", "promotions", false)
	b := startGate(t, client, store, p.filtered).follows()
	b.uses(generation)
	b.expect("by the filter", "suppress opted_out filter false", func() string { return b.answer("out", "promotions", "push") })
	b.expect("by the replay", "suppress opted_out", func() string { return b.check("n", "w", "promotions") })
	for i := range 8 {
		want := "allow opted_in"
		if i >= 5 {
			want = "suppress frequency_cap"
		}
		b.expect("a check with a cap", want, func() string { return b.check(fmt.Sprint("n", i), "u", "promotions") })
	}
	b.expect("asked again", "allow opted_in", func() string { return b.check("n0", "u", "promotions") })
	// A cap that has lost its TTL gets one.
	for _, admin := range admins {
		for _, key := range admin.Keys(t.Context(), "*cap:*").Val() {
			admin.Persist(t.Context(), key)
		}
	}
	b.expect("without a TTL", "suppress frequency_cap", func() string { return b.check("n9", "u", "promotions") })
	a.must(http.MethodPost, "/v1/preferences/unsubscribe-all", `{"user_id":"x","reason":"user_requested"}`)
	redistest.Until(t, "the hold is known elsewhere", func() bool {
		c, exact, _ := b.Overlay().Consent(sendgate.UserID("x"))
		return exact && c.Global
	})
	b.saysOfCaps()
	redistest.Until(t, "every right is used", func() bool { return len(unused(t, admins, rights)) == 0 })
	for _, admin := range admins {
		if denied := admin.Do(t.Context(), "ACL", "LOG").Val(); len(denied.([]any)) != 0 {
			t.Errorf("denied: %v", denied)
		}
	}
}

// unused are rights that nobody has made use of.
func unused(t *testing.T, admins []redis.UniversalClient, rights string) []string {
	t.Helper()
	var stats strings.Builder
	for _, admin := range admins {
		info, err := admin.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		stats.WriteString(info)
	}
	return slices.DeleteFunc(strings.Fields(rights), func(right string) bool {
		return strings.Contains(stats.String(), "cmdstat_"+strings.TrimPrefix(right, "+")+":")
	})
}

// TestAWrongPassword shows in readiness.
func TestAWrongPassword(t *testing.T) {
	server := redistest.Start(t)
	addUser(t, server.Client(), "~t:* &t:*", leastCommands)
	g := startGate(t, openAs(t, redisconn.Options{Addrs: []string{server.Addr()}}, "wrong"), openStore(t), nil)
	g.saysOfCaps("could not be read", "WRONGPASS")
	g.expect("a check", "suppress unverifiable", func() string { return g.check("n", "u", "promotions") })
}
