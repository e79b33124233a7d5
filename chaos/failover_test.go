package chaos_test

import (
	"strings"
	"time"

	"github.com/sendgate/sendgate/internal/redistest"
)

// lag is for how long the replica has heard nothing when it becomes the master.
const lag = 2500 * time.Millisecond

// failover makes a replica the master that has missed the last seconds. What
// the gates announced meanwhile is lost with the old master, caps included.
func failover(r *rig) {
	replica, link := r.replicate()
	link.blackHole()
	r.lasts(lag)
	r.engine.one.Kill()
	r.promote(replica)
	r.eachGate(func(g *gate) { g.redis.lead(replica.Addr()) })
}

// replicate starts a replica that follows by a link which can be cut, and
// returns once it follows.
func (r *rig) replicate() (replica *redistest.Server, link *proxy) {
	r.t.Helper()
	link, replica = startProxy(r.t, r.engine.one.Addr()), startRedis(r.t)
	host, port, _ := strings.Cut(link.addr(), ":")
	if err := replica.Client().SlaveOf(r.t.Context(), host, port).Err(); err != nil {
		r.t.Fatal(err)
	}
	until(r.t, "the replica follows", replica.IsReplica)
	return replica, link
}

// promote makes a replica the master as far as it is concerned, and this side.
func (r *rig) promote(replica *redistest.Server) {
	r.t.Helper()
	if err := replica.Client().SlaveOf(r.t.Context(), "NO", "ONE").Err(); err != nil {
		r.t.Fatal(err)
	}
	r.useRedis(replica)
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

// split is for how long there are two masters: long enough for a gate to break
// the promise while they are there.
const split = 8 * time.Second

// twoMasters cuts the master off from its replica, which takes its place for
// all gates but one: that goes on with the old master, and does not see the new
// one. Then the old one becomes a replica of the new, which the gate finds a
// moment later.
func twoMasters(r *rig) { r.splitMasters(func(*redistest.Server) {}) }

// twoMastersOneRefuses does so where a master that is cut off from its replica
// refuses writes.
func twoMastersOneRefuses(r *rig) {
	r.splitMasters(func(old *redistest.Server) { r.leastReplicas("1", old) })
}

func (r *rig) splitMasters(prepare func(old *redistest.Server)) {
	old := r.engine.one
	replica, link := r.replicate()
	prepare(old)
	link.blackHole()
	r.lasts(lag)
	r.promote(replica)
	for _, g := range r.gates {
		if g != r.victim() {
			g.redis.lead(replica.Addr())
		}
	}
	r.lasts(split)
	host, port, _ := strings.Cut(replica.Addr(), ":")
	if err := old.Client().SlaveOf(r.t.Context(), host, port).Err(); err != nil {
		r.t.Fatal(err)
	}
	until(r.t, "the old master is a replica", old.IsReplica)
	r.victim().redis.lead(replica.Addr())
	old.Kill()
}
