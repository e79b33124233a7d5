package redisconn

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Command is a command about one key.
type Command struct {
	Key string
	redis.Cmder
}

// NoRetry tells go-redis that a command must not be sent a second time when its
// answer is lost. Left alone, a cluster client repeats what a broken connection
// cost it.
func (Command) NoRetry() bool { return true }

// Exec sends commands in one round trip to each Redis that they concern, each
// once, and waits for the answers. Every command has its own error afterwards.
//
// A node of a cluster that does not answer costs the commands about its keys,
// and no others: go-redis' own pipeline tries these again and, when time runs
// out over it, makes that the error of all. What has moved to another node is
// sent there; nothing of it has run.
func Exec(ctx context.Context, client redis.UniversalClient, commands []Command) {
	cluster, many := client.(*redis.ClusterClient)
	if !many {
		send(ctx, client, commands)
		return
	}
	var sending sync.WaitGroup
	for node, some := range byNode(ctx, cluster, commands) {
		sending.Go(func() { send(ctx, node, some) })
	}
	sending.Wait()
	var moved []Command
	changed := false
	for _, c := range commands {
		switch err := c.Err(); {
		case redis.HasErrorPrefix(err, "MOVED "), redis.HasErrorPrefix(err, "ASK "):
			moved = append(moved, c)
		case err != nil && isLost(err):
			changed = true
		}
	}
	if changed || len(moved) > 0 {
		cluster.ReloadState(ctx) // in the background
	}
	send(ctx, cluster, moved)
}

// Node names the Redis that a key lives in: the address of its master in a
// cluster, as far as that is known; empty where there is only one, or none is
// known.
func Node(ctx context.Context, client redis.UniversalClient, key string) string {
	if cluster, many := client.(*redis.ClusterClient); many {
		if node, err := cluster.MasterForKey(ctx, key); err == nil {
			return node.Options().Addr
		}
	}
	return ""
}

// byNode groups commands by the master that has their keys. Those that nobody
// has get an error.
func byNode(ctx context.Context, cluster *redis.ClusterClient, commands []Command) map[*redis.Client][]Command {
	nodes := map[*redis.Client][]Command{}
	for _, c := range commands {
		node, err := cluster.MasterForKey(ctx, c.Key)
		if err != nil {
			c.SetErr(err)
			continue
		}
		nodes[node] = append(nodes[node], c)
	}
	return nodes
}

// sender is what all clients can do.
type sender interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// send sends commands in one round trip.
func send(ctx context.Context, client sender, commands []Command) {
	switch len(commands) {
	case 0:
		return
	case 1:
		_ = client.Process(ctx, commands[0]) // which has the error
		return
	}
	pipe := client.Pipeline()
	for _, c := range commands {
		_ = pipe.Process(ctx, c) // only queues
	}
	_, _ = pipe.Exec(ctx) // every command has its own error
}
