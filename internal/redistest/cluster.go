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

// Cluster is a real Redis Cluster of three masters, which share all slots.
type Cluster struct {
	t     testing.TB
	nodes []*Server // the masters first, as they were at the start
}

// StartCluster starts a cluster without replicas and returns once every master
// says that the whole of it is up, which takes it two to three seconds.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	c.startMasters()
	c.AwaitServed(c.nodes...)
	return c
}

// startMasters starts the masters and introduces them to each other. Options
// are those of every node.
func (c *Cluster) startMasters(options ...string) {
	c.t.Helper()
	for i := range clusterMasters {
		c.startNode(options)
		from, to := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1
		c.do(i, "cluster", "addslotsrange", from, to)
	}
}

// startNode starts one more node, and introduces it to the first.
func (c *Cluster) startNode(options []string) {
	c.t.Helper()
	s := start(c.t, func(s *Server) {
		s.busPort = freePort(c.t)
		s.extra = append([]string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(s.busPort)}, options...)
	})
	c.nodes = append(c.nodes, s)
	n := len(c.nodes)
	c.do(n-1, "cluster", "set-config-epoch", n) // distinct, so that none has to be agreed on
	if first := c.nodes[0]; s != first {
		c.do(n-1, "cluster", "meet", "127.0.0.1", first.port, first.busPort)
	}
}

func (c *Cluster) do(i int, command ...any) {
	c.t.Helper()
	if err := c.nodes[i].Client().Do(context.Background(), command...).Err(); err != nil {
		c.t.Fatalf("%v on %s: %v", command, c.nodes[i].Addr(), err)
	}
}

// AwaitServed waits until some nodes say that all slots are served, and know of
// all other nodes.
func (c *Cluster) AwaitServed(by ...*Server) {
	c.t.Helper()
	for _, s := range by {
		node := s.Client()
		Until(c.t, "cluster at "+s.Addr()+" is up", func() bool { return c.isUp(node) })
	}
}

func (c *Cluster) isUp(node redis.UniversalClient) bool {
	info, err := node.ClusterInfo(context.Background()).Result()
	for _, line := range []string{
		"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d\r", len(c.nodes)),
		fmt.Sprintf("cluster_size:%d\r", clusterMasters), fmt.Sprintf("cluster_slots_ok:%d\r", clusterSlots),
	} {
		if err != nil || !strings.Contains(info, line) {
			return false
		}
	}
	return true
}

// Addrs lists the nodes' host:port.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, s := range c.nodes {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Masters lists the servers that are masters at the start.
func (c *Cluster) Masters() []*Server { return c.nodes[:clusterMasters] }

// Client opens a cluster client as the programs do. Every call makes another
// one; it is closed when the test ends.
func (c *Cluster) Client() redis.UniversalClient {
	c.t.Helper()
	return open(c.t, redisconn.Options{Mode: "cluster", Addrs: c.Addrs()})
}
