package chaos_test

import (
	"syscall"
	"time"
)

// trouble is one kind of fault. bring brings it about, and returns once it is
// over. It is brought about while people write and gates are asked.
type trouble struct {
	name    string
	bring   func(r *rig)
	touches reach
	// losesCaps says why what was charged under caps may be lost once, so that
	// up to the limit more is charged. Empty: it may not.
	losesCaps string
	then      *trouble // brought about next, to what this one leaves
}

const (
	capsEmptied = "caps: a Redis that comes back empty starts them anew"
	capsLagged  = "caps: a failover gives back what the replica had not got"
	capsTwice   = "caps: each side of the split grants up to the limit"
)

// troubles are the faults on a single Redis. The last Redis stays, so that the
// one which takes its place comes at the end.
var troubles = []trouble{
	{name: "gate killed in a burst", bring: killInBurst, touches: theVictim},
	{name: "gate killed at each step", bring: killAtSteps, touches: theVictim},
	{name: "Redis killed, back empty", bring: redisEmptied, touches: everyGate, losesCaps: capsEmptied},
	{name: "Redis killed, back with its file", bring: redisRestarted, touches: everyGate},
	{name: "gate's Redis reset", bring: redisReset, touches: theVictim},
	{name: "gate's Redis black-holed", bring: redisBlackHoled, touches: theVictim},
	{name: "stream trimmed under a stopped gate", bring: trimmedWhileStopped, touches: theVictim},
	{name: "gate stopped", bring: gateStopped, touches: theVictim},
	{name: "store unreachable", bring: storeUnreachable, touches: everyGate},
	{name: "store black-holed at a gate", bring: storeBlackHoled, touches: theVictim},
	{name: "store slow", bring: storeSlow, touches: everyGate},
	{name: "store throttling", bring: storeThrottling, touches: everyGate},
	{name: "Redis out of memory", bring: redisFull, touches: everyGate},
	{name: "old fill after an eviction", bring: oldFill, touches: theVictim},
	{name: "old revision swept after a swap", bring: oldSweep, touches: theVictim},
	{name: "builder killed mid-scan", bring: builderKilled, touches: noGate},
	{name: "builder killed mid-publish", bring: builderKilledPublishing, touches: noGate},
	{name: "snapshots corrupted", bring: snapshotsCorrupted, touches: noGate},
	{name: "failover to a lagging replica", bring: failover, touches: everyGate, losesCaps: capsLagged},
	{name: "the same, and all gates killed", bring: failoverAndRestart, touches: everyGate, losesCaps: capsLagged},
	{name: "two masters", bring: twoMasters, touches: noGate, losesCaps: capsTwice},
	{name: "two masters, min-replicas-to-write 1", bring: twoMastersOneRefuses, touches: noGate, losesCaps: capsTwice},
}

// clockTroubles are for a gate whose clock is not that of the others: a fault
// which never ends, and is in nobody's way.
var clockTroubles = []trouble{
	{name: "gate killed in a burst", bring: killInBurst, touches: theVictim},
	{name: "Redis killed, back with its file", bring: redisRestarted, touches: everyGate},
}

// lasts waits for as long as a fault goes on. Nothing is decided by it.
func (r *rig) lasts(d time.Duration) { <-time.After(d * time.Duration(r.scale)) }

// stalls waits for as long as something is stalled that is to be so for long.
func (r *rig) stalls() { <-time.After(r.stall) }

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

func (r *rig) eachGate(do func(g *gate)) {
	for _, g := range r.gates {
		do(g)
	}
}

func gateStopped(r *rig) {
	g := r.victim()
	defer r.alone(int32(g.index))()
	g.running().Signal(syscall.SIGSTOP)
	r.stalls()
	g.running().Signal(syscall.SIGCONT)
}
