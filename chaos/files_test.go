package chaos_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// builderKilled kills a builder that has begun to read the store. Then another
// one builds.
func builderKilled(r *rig) {
	store := startProxy(r.t, r.dynamo.Addr())
	scanning := store.holdAt(true, sent(".Scan"))
	builder := r.build(r.redis.Addr(), store.addr())
	select {
	case <-scanning:
	case <-builder.Ended():
		r.t.Fatalf("the builder ended before it read the store, and said: %s", builder.Said())
	case <-time.After(patience):
		r.t.Fatal("the builder does not read the store")
	}
	r.lasts(500 * time.Millisecond)
	builder.Kill()
	r.buildWell()
}

// snapshotsCorrupted spoils what is published while it is in use, and publishes
// garbage. A gate that is started then finds nothing that it can use, and
// another one keeps what it has; until a good one is built.
func snapshotsCorrupted(r *rig) {
	published, err := filepath.Glob(filepath.Join(r.archive, "*.filter"))
	if err != nil || len(published) == 0 {
		r.t.Fatalf("nothing is published in %s: %v", r.archive, err)
	}
	slices.Sort(published)
	for i, name := range published {
		data, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		if i%2 == 0 {
			data[len(data)/2] ^= 0x10
		} else {
			data = data[:len(data)*2/3]
		}
		r.overwrite(name, data)
	}
	newest := published[len(published)-1]
	stem, digits, _ := cutLast(strings.TrimSuffix(newest, ".filter"), "-")
	generation, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		r.t.Fatalf("what generation is %s? %v", newest, err)
	}
	r.overwrite(fmt.Sprintf("%s-%0*d.filter", stem, len(digits), generation+1), bytes.Repeat([]byte("garbage\n"), 5000))
	r.victim().kill()
	r.victim().start()
	r.lasts(1500 * time.Millisecond)
	r.buildWell()
}

func (r *rig) overwrite(name string, data []byte) {
	r.t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// lag is for how long the replica has heard nothing when it becomes the master.
const lag = 2500 * time.Millisecond

// failover makes a replica the master that has missed the last seconds. What
// the gates announced meanwhile is lost with the old master, caps included.
func failover(r *rig) {
	ctx := r.t.Context()
	link := startProxy(r.t, r.redis.Addr())
	replica := startRedis(r.t)
	host, port, _ := strings.Cut(link.addr(), ":")
	client := replica.Client()
	if err := client.SlaveOf(ctx, host, port).Err(); err != nil {
		r.t.Fatal(err)
	}
	until(r.t, "the replica follows", func() bool {
		info, err := client.Info(ctx, "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	link.blackHole()
	r.lasts(lag)
	r.redis.Kill()
	if err := client.SlaveOf(ctx, "NO", "ONE").Err(); err != nil {
		r.t.Fatal(err)
	}
	r.useRedis(replica)
	r.eachGate(func(g *gate) { g.redis.lead(replica.Addr()) })
}

// failoverAndRestart takes away what gates remember as well, so that only the
// store knows of the last seconds.
func failoverAndRestart(r *rig) {
	failover(r)
	r.eachGate(func(g *gate) {
		g.kill()
		g.start()
	})
}
