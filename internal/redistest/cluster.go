package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/redisconn"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
)

// Cluster is a real Redis Cluster of three masters without replicas, which
// share all slots.
type Cluster struct {
	t       testing.TB
	masters []*Server
}

// StartCluster starts a cluster and returns once every master says that the
// whole of it is up, which takes it two to three seconds.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for range clusterMasters {
		c.masters = append(c.masters, start(t, func(s *Server) {
			s.busPort = freePort(t)
			s.extra = []string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(s.busPort)}
		}))
	}
	for i := range c.masters {
		c.join(i)
	}
	ready := []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d\r", clusterMasters),
		fmt.Sprintf("cluster_size:%d\r", clusterMasters), fmt.Sprintf("cluster_slots_ok:%d\r", clusterSlots)}
	for _, m := range c.masters {
		node := m.Client()
		Until(t, "cluster at "+m.Addr()+" is up", func() bool {
			info, err := node.ClusterInfo(context.Background()).Result()
			for _, line := range ready {
				if err != nil || !strings.Contains(info, line) {
					return false
				}
			}
			return true
		})
	}
	return c
}

// join gives a master its share of the slots and introduces it to the first.
func (c *Cluster) join(i int) {
	c.t.Helper()
	ctx, node, first := context.Background(), c.masters[i].Client(), c.masters[0]
	from, to := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1
	steps := [][]any{
		{"cluster", "set-config-epoch", i + 1}, // distinct, so that none has to be agreed on
		{"cluster", "addslotsrange", from, to},
	}
	if i > 0 {
		steps = append(steps, []any{"cluster", "meet", "127.0.0.1", first.port, first.busPort})
	}
	for _, step := range steps {
		if err := node.Do(ctx, step...).Err(); err != nil {
			c.t.Fatalf("%v on %s: %v", step, c.masters[i].Addr(), err)
		}
	}
}

// Addrs lists the masters' host:port.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.masters))
	for i, m := range c.masters {
		addrs[i] = m.Addr()
	}
	return addrs
}

// Masters lists the servers that make up the cluster.
func (c *Cluster) Masters() []*Server { return c.masters }

// Client opens a cluster client as the programs do. Every call makes another
// one; it is closed when the test ends.
func (c *Cluster) Client() redis.UniversalClient {
	c.t.Helper()
	return open(c.t, redisconn.Options{Mode: "cluster", Addrs: c.Addrs()})
}
