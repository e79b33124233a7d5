package chaos_test

import (
	"syscall"
	"time"
)

func redisEmptied(r *rig) {
	r.eachGate(func(g *gate) { g.redis.refuse() })
	if err := r.client.FlushAll(r.t.Context()).Err(); err != nil {
		r.t.Fatal(err)
	}
	r.engine.one.Kill()
	r.lasts(1500 * time.Millisecond)
	r.engine.one.Restart()
	r.eachGate(func(g *gate) { g.redis.heal() })
}

func redisRestarted(r *rig) {
	r.engine.one.Kill()
	r.lasts(1500 * time.Millisecond)
	r.engine.one.Restart()
}

func redisReset(r *rig) {
	for range 5 {
		r.victim().redis.reset()
		r.lasts(200 * time.Millisecond)
	}
}

func redisBlackHoled(r *rig) {
	r.victim().redis.blackHole()
	r.stalls()
	r.victim().redis.heal()
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

// redisFull has Redis refuse all writes, as one without memory does.
func redisFull(r *rig) {
	for _, most := range []string{"1", "0"} { // none is without a limit
		if err := r.client.ConfigSet(r.t.Context(), "maxmemory", most).Err(); err != nil {
			r.t.Fatal(err)
		}
		if most == "1" {
			r.lasts(2500 * time.Millisecond)
		}
	}
}
