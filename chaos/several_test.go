package chaos_test

import (
	"syscall"
	"time"

	"github.com/sendgate/sendgate/internal/redistest"
)

// clusterTroubles are the faults on a cluster of three masters and their
// replicas.
var clusterTroubles = []trouble{
	{name: "gate killed in a burst", bring: killInBurst, touches: theVictim},
	{
		name: "master killed", bring: clusterMasterKilled, touches: everyGate, losesCaps: capsLagged,
		then: &trouble{name: "killed master back as a replica", bring: clusterMasterBack, touches: noGate},
	},
	{
		name: "master stopped", bring: clusterMasterStopped, touches: everyGate, losesCaps: capsLagged,
		then: &trouble{name: "stopped master woken up", bring: clusterMasterWoken, touches: noGate, losesCaps: capsTwice},
	},
	{name: "stopped and woken up, min-replicas-to-write 1", bring: clusterMasterRefuses, touches: everyGate, losesCaps: capsTwice},
}

// sentinelTroubles are the faults on a master and its replica behind Sentinels.
var sentinelTroubles = []trouble{
	{
		name: "master killed", bring: sentinelMasterKilled, touches: everyGate, losesCaps: capsLagged,
		then: &trouble{name: "killed master back as a replica", bring: sentinelMasterBack, touches: noGate},
	},
	{
		name: "master stopped", bring: sentinelMasterStopped, touches: everyGate, losesCaps: capsLagged,
		then: &trouble{name: "stopped master woken up", bring: sentinelMasterWoken, touches: noGate, losesCaps: capsTwice},
	},
}

// failMaster has something done to a master of the cluster, and waits until its
// replica has taken over.
func (r *rig) failMaster(do func(master *redistest.Server)) {
	r.failed, _ = r.engine.cluster.Master()
	do(r.failed)
	r.clusterTakesOver(r.failed)
}

func kill(s *redistest.Server) { s.Kill() }
func stop(s *redistest.Server) { s.Signal(syscall.SIGSTOP) }

func clusterMasterKilled(r *rig) { r.failMaster(kill) }

func clusterMasterBack(r *rig) {
	r.failed.Restart()
	r.engine.cluster.AwaitWhole()
}

func clusterMasterStopped(r *rig) { r.failMaster(stop) }

// clusterMasterWoken wakes up a master whose replica has taken over. It goes on
// as a master until it hears of that.
func clusterMasterWoken(r *rig) {
	r.failed.Signal(syscall.SIGCONT)
	r.engine.cluster.AwaitWhole()
}

// clusterMasterRefuses stops a master and wakes it up where a master without a
// replica refuses writes; which the new one is until the old one follows it.
func clusterMasterRefuses(r *rig) {
	r.leastReplicas("1", r.engine.cluster.Nodes()...)
	r.failMaster(stop)
	r.lasts(2 * time.Second)
	clusterMasterWoken(r)
	r.leastReplicas("0", r.engine.cluster.Nodes()...)
}

// clusterTakesOver waits until all others say that all slots are served without
// a node.
func (r *rig) clusterTakesOver(gone *redistest.Server) {
	r.t.Helper()
	for _, s := range r.engine.cluster.Nodes() {
		if s != gone {
			until(r.t, "the replica takes over", func() bool { return r.engine.cluster.TakenOver(gone, s) })
		}
	}
}

// leastReplicas has masters refuse writes when they have fewer replicas.
func (r *rig) leastReplicas(n string, of ...*redistest.Server) {
	r.t.Helper()
	for _, s := range of {
		if err := s.Client().ConfigSet(r.t.Context(), "min-replicas-to-write", n).Err(); err != nil {
			r.t.Fatal(err)
		}
		if err := s.Client().ConfigSet(r.t.Context(), "min-replicas-max-lag", "1").Err(); err != nil {
			r.t.Fatal(err)
		}
	}
}

func sentinelMasterKilled(r *rig) {
	s := r.engine.sentinels
	s.Failover()
	s.AwaitNamed(s.Replica)
}

func sentinelMasterBack(r *rig) {
	r.engine.sentinels.Master.Restart()
	r.sentinelsSwap()
}

func sentinelMasterStopped(r *rig) {
	s := r.engine.sentinels
	stop(s.Master)
	until(r.t, "the replica is promoted", s.Replica.IsMaster)
	s.AwaitNamed(s.Replica)
}

// sentinelMasterWoken wakes up a master whose replica has taken its place. It
// goes on as a master until the Sentinels tell it.
func sentinelMasterWoken(r *rig) {
	r.engine.sentinels.Master.Signal(syscall.SIGCONT)
	r.sentinelsSwap()
}

// sentinelsSwap waits until the old master follows the new one.
func (r *rig) sentinelsSwap() {
	s := r.engine.sentinels
	until(r.t, "the old master is a replica", func() bool { return s.Master.Follows(s.Replica) })
	s.Master, s.Replica = s.Replica, s.Master
}
