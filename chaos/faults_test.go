package chaos_test

import (
	"bytes"
	"syscall"
	"time"
)

// trouble is one kind of fault. bring brings it about, and returns once it is
// over. It is brought about while people write and gates are asked.
type trouble struct {
	name  string
	bring func(r *rig)
	// losesCaps says that the Redis which holds the caps loses them once.
	losesCaps bool
}

// troubles are all faults. The last Redis stays, so that the one which takes
// its place comes at the end.
var troubles = []trouble{
	{name: "gate killed in a burst", bring: killInBurst},
	{name: "gate killed at each step", bring: killAtSteps},
	{name: "Redis killed, back empty", bring: redisEmptied, losesCaps: true},
	{name: "Redis killed, back with its file", bring: redisRestarted},
	{name: "gate's Redis reset", bring: redisReset},
	{name: "gate's Redis black-holed", bring: redisBlackHoled},
	{name: "stream trimmed under a stopped gate", bring: trimmedWhileStopped},
	{name: "gate stopped", bring: gateStopped},
	{name: "store unreachable", bring: storeUnreachable},
	{name: "store black-holed at a gate", bring: storeBlackHoled},
	{name: "store slow", bring: storeSlow},
	{name: "Redis out of memory", bring: redisFull},
	{name: "old fill after an eviction", bring: oldFill},
	{name: "builder killed mid-scan", bring: builderKilled},
	{name: "snapshots corrupted", bring: snapshotsCorrupted},
	{name: "failover to a lagging replica", bring: failover, losesCaps: true},
	{name: "the same, and all gates killed", bring: failoverAndRestart, losesCaps: true},
}

// lasts waits for as long as a fault goes on. Nothing is decided by it.
func (r *rig) lasts(d time.Duration) { <-time.After(d * time.Duration(r.scale)) }

// victim is the gate that faults of one gate are about.
func (r *rig) victim() *gate { return r.gates[0] }

func (r *rig) alone(n int32) (end func()) {
	r.avoid.Store(n)
	return func() { r.avoid.Store(-1) }
}

const burst = 15 // changes before the gate is killed

func killInBurst(r *rig) {
	for range 2 * r.scale {
		row := r.row.Load()
		row.mu.Lock()
		before := row.changes
		row.mu.Unlock()
		r.target.Store(int32(r.victim().index))
		until(r.t, "the burst has begun", func() bool {
			row.mu.Lock()
			defer row.mu.Unlock()
			return row.changes >= before+burst
		})
		r.victim().kill()
		r.target.Store(-1)
		r.victim().start()
	}
}

// sent matches a piece of what a program sends by all of some texts in it.
func sent(texts ...string) func([]byte) bool {
	return func(data []byte) bool {
		for _, text := range texts {
			if !bytes.Contains(data, []byte(text)) {
				return false
			}
		}
		return true
	}
}

// killAtSteps kills a gate at every step of the write path: what goes over the
// network there is held up, and the gate killed then. With passes it is the
// answer that is held up. The sweep takes the same steps.
func killAtSteps(r *rig) {
	g := r.victim()
	put, announce, log := sent(".PutItem", tablePrefix+"-records"), sent("evalsha", "sendgate:changes"), sent(".PutItem", tablePrefix+"-changes")
	for _, step := range []struct {
		at      *proxy
		passes  bool
		matches func([]byte) bool
		what    string
	}{
		{g.store, false, put, "before the record is stored"},
		{g.store, true, put, "when it is stored"},
		{g.redis, false, announce, "before it is announced"},
		{g.redis, true, announce, "when it is announced"},
		{g.store, false, log, "before the change is logged"},
		{g.store, true, log, "when it is logged"},
	} {
		sprung := step.at.holdAt(step.passes, step.matches)
		r.target.Store(int32(g.index))
		select {
		case <-sprung:
		case <-time.After(patience):
			r.t.Fatalf("a gate never gets to the step %q", step.what)
		}
		r.target.Store(-1)
		g.kill()
		step.at.reset() // what was held up is lost
		step.at.heal()
		g.start()
	}
}

func (r *rig) eachGate(do func(g *gate)) {
	for _, g := range r.gates {
		do(g)
	}
}

func redisEmptied(r *rig) {
	r.eachGate(func(g *gate) { g.redis.refuse() })
	if err := r.client.FlushAll(r.t.Context()).Err(); err != nil {
		r.t.Fatal(err)
	}
	r.redis.Kill()
	r.lasts(1500 * time.Millisecond)
	r.redis.Restart()
	r.eachGate(func(g *gate) { g.redis.heal() })
}

func redisRestarted(r *rig) {
	r.redis.Kill()
	r.lasts(1500 * time.Millisecond)
	r.redis.Restart()
}

func redisReset(r *rig) {
	for range 5 {
		r.victim().redis.reset()
		r.lasts(200 * time.Millisecond)
	}
}

func redisBlackHoled(r *rig) {
	r.victim().redis.blackHole()
	r.lasts(3500 * time.Millisecond)
	r.victim().redis.heal()
}

func gateStopped(r *rig) {
	g := r.victim()
	defer r.alone(int32(g.index))()
	g.running().Signal(syscall.SIGSTOP)
	r.lasts(3500 * time.Millisecond)
	g.running().Signal(syscall.SIGCONT)
}

func trimmedWhileStopped(r *rig) {
	g := r.victim()
	defer r.alone(int32(g.index))()
	g.running().Signal(syscall.SIGSTOP)
	r.lasts(2500 * time.Millisecond)
	for p := range partitions {
		if err := r.client.XTrimMaxLen(r.t.Context(), r.space.Stream(p), int64(p%2)).Err(); err != nil {
			r.t.Fatal(err)
		}
	}
	g.running().Signal(syscall.SIGCONT)
}

func storeUnreachable(r *rig) {
	r.eachGate(func(g *gate) { g.store.refuse() })
	r.lasts(2500 * time.Millisecond)
	r.eachGate(func(g *gate) { g.store.heal() })
}

func storeBlackHoled(r *rig) {
	defer r.alone(int32(r.victim().index))()
	r.victim().store.blackHole()
	r.lasts(2500 * time.Millisecond)
	r.victim().store.heal()
}

func storeSlow(r *rig) {
	r.eachGate(func(g *gate) { g.store.slow(100 * time.Millisecond) })
	r.lasts(3 * time.Second)
	r.eachGate(func(g *gate) { g.store.heal() })
}
