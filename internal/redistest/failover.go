package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// nodeTimeout is for how long a node says nothing before the others hold it to
// be down, in milliseconds.
const nodeTimeout = 1500

// StartReplicatedCluster starts a cluster in which each master has a replica,
// and returns once all of it is up and every replica follows. All keep a file.
func StartReplicatedCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	options := []string{"--cluster-node-timeout", strconv.Itoa(nodeTimeout), "--appendonly", "yes", "--repl-diskless-sync-delay", "0"}
	c.startMasters(options...)
	for range clusterMasters {
		c.startNode(options)
	}
	c.AwaitServed(c.nodes...)
	for i, m := range c.Masters() {
		id, err := m.Client().Do(context.Background(), "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		c.do(clusterMasters+i, "cluster", "replicate", id)
	}
	c.AwaitWhole()
	return c
}

// Nodes lists all servers of the cluster.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Master is a server that is a master now, and replica the one that follows it.
func (c *Cluster) Master() (master, replica *Server) {
	c.t.Helper()
	for _, master := range c.nodes {
		for _, replica := range c.nodes {
			if replica.Follows(master) {
				return master, replica
			}
		}
	}
	c.t.Fatal("no node of the cluster has a replica")
	return nil, nil
}

// TakenOver tells whether a node holds that all slots are served, and that
// another one, which has been a master, has failed.
func (c *Cluster) TakenOver(failed, by *Server) bool {
	client := redis.NewClient(by.lookOptions())
	defer func() { _ = client.Close() }()
	nodes, err := client.ClusterNodes(context.Background()).Result()
	if err != nil || !c.isUp(client) {
		return false
	}
	for line := range strings.Lines(nodes) {
		if strings.Contains(line, failed.Addr()+"@") {
			fields := strings.Fields(line)
			return len(fields) == nodeFields && strings.Contains(fields[nodeFlags], "fail")
		}
	}
	return false
}

// A line of CLUSTER NODES has these fields, and the slots of the node if it has
// any.
const (
	nodeFlags  = 2
	nodeFields = 8
)

// AwaitWhole waits until every node says that all slots are served, and every
// replica follows a master.
func (c *Cluster) AwaitWhole() {
	c.t.Helper()
	c.AwaitServed(c.nodes...)
	Until(c.t, "every master has a replica", func() bool {
		following := 0
		for _, s := range c.nodes {
			if s.IsReplica() {
				following++
			}
		}
		return following == len(c.nodes)-clusterMasters
	})
}

const linkUp = "master_link_status:up"

// IsMaster tells whether a server holds that it is a master.
func (s *Server) IsMaster() bool { return s.says("role:master") }

// IsReplica tells whether a server is a replica, and connected to its master.
func (s *Server) IsReplica() bool { return s.says("role:slave", linkUp) }

// Follows tells whether a server is a replica of another one, and connected to
// it.
func (s *Server) Follows(master *Server) bool {
	return s.says("role:slave", linkUp, "master_port:"+strconv.Itoa(master.port))
}

// says tells whether a server says all of something about its replication. It
// may be asked often, and so closes what it opens.
func (s *Server) says(lines ...string) bool {
	client := redis.NewClient(s.lookOptions())
	defer func() { _ = client.Close() }()
	info, err := client.Info(context.Background(), "replication").Result()
	for _, line := range lines {
		if err != nil || !strings.Contains(info, line+"\r") {
			return false
		}
	}
	return true
}
