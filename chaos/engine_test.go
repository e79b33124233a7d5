package chaos_test

import (
	"testing"

	"github.com/sendgate/sendgate/internal/redistest"
)

// engine is the Redis of a rig: one of these.
type engine struct {
	one       *redistest.Server // the master, behind a proxy for each gate
	cluster   *redistest.Cluster
	sentinels *redistest.Sentinels
}

// options are those of gates and builder, in their file.
func (e engine) options() map[string]any {
	switch {
	case e.cluster != nil:
		return map[string]any{"mode": "cluster", "addrs": e.cluster.Addrs()}
	case e.sentinels != nil:
		o := e.sentinels.Options()
		return map[string]any{"mode": o.Mode, "addrs": o.Addrs, "master_name": o.MasterName}
	default:
		return map[string]any{"addrs": []string{"127.0.0.1:1"}} // each has a proxy of its own
	}
}

// addr is where the one Redis is; empty where there are several.
func (e engine) addr() string {
	if e.one == nil {
		return ""
	}
	return e.one.Addr()
}

func onOne(r *rig) { r.useRedis(startRedis(r.t)) }

func onCluster(r *rig) {
	r.engine.cluster = redistest.StartReplicatedCluster(r.t)
	r.client = r.engine.cluster.Client()
}

func onSentinel(r *rig) {
	r.engine.sentinels = redistest.StartSentinels(r.t, "")
	r.client = r.engine.sentinels.Client()
}

// startRedis starts a Redis that keeps a file, and waits for no further replica
// before it serves one.
func startRedis(t *testing.T) *redistest.Server {
	t.Helper()
	return redistest.Start(t, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
}

// useRedis makes a server the master as far as this side goes by it.
func (r *rig) useRedis(s *redistest.Server) { r.engine.one, r.client = s, s.Client() }
