package redisconn

import (
	"context"
	"errors"
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
	exec(ctx, client, commands, func(ctx context.Context, node sender, commands []Command) (bool, error) {
		send(ctx, node, commands)
		return false, nil
	})
}

// exec is Exec by some way of sending commands to one Redis. An error of that says
// that the commands have not been waited for: they are not looked at again, and it
// is the error of each.
func exec(ctx context.Context, client redis.UniversalClient, commands []Command, send sending) []error {
	errs := make([]error, len(commands))
	cluster, many := client.(*redis.ClusterClient)
	if !many {
		send.of(ctx, client, commands, nil, errs)
		return errs
	}
	var under sync.WaitGroup
	for node, places := range byNode(ctx, cluster, commands, errs) {
		under.Go(func() { send.of(ctx, node, commands, places, errs) })
	}
	under.Wait()
	var moved []int
	changed := false
	for i, err := range errs {
		switch {
		case redis.HasErrorPrefix(err, "MOVED "), redis.HasErrorPrefix(err, "ASK "):
			moved = append(moved, i)
		case err != nil && isLost(err):
			changed = true
		}
	}
	if changed || len(moved) > 0 {
		cluster.ReloadState(ctx) // in the background
	}
	if len(moved) > 0 {
		send.of(ctx, cluster, commands, moved, errs)
	}
	return errs
}

// sending is a way of sending commands to one Redis. They may have followed others
// in a pipeline.
type sending func(ctx context.Context, node sender, commands []Command) (followed bool, left error)

// followerError is the error of commands that shared a pipeline which was lost, or
// has not answered in time. Another caller has the same of the same pipeline.
type followerError struct{ error }

func (f followerError) Unwrap() error { return f.error }

// Followed tells of an error that it is of a shared pipeline whose loss another
// caller has been told of as well, without this being true of that one's: so of one
// loss, however many share it, one error is left to be counted.
func Followed(err error) bool { return errors.As(err, new(followerError)) }

// of sends the commands in some places, nil being all, and notes their errors.
func (s sending) of(ctx context.Context, node sender, commands []Command, places []int, errs []error) {
	some := commands
	if places != nil {
		some = make([]Command, len(places))
		for i, place := range places {
			some[i] = commands[place]
		}
	}
	followed, left := s(ctx, node, some)
	for i, c := range some {
		err := left
		if left == nil {
			err = c.Err()
		}
		if followed && err != nil && !Answered(err) {
			err = followerError{err}
		}
		place := i
		if places != nil {
			place = places[i]
		}
		errs[place] = err
	}
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

// byNode groups the places of commands by the master that has their keys. Those
// that nobody has get an error.
func byNode(ctx context.Context, cluster *redis.ClusterClient, commands []Command, errs []error) map[*redis.Client][]int {
	nodes := map[*redis.Client][]int{}
	for i, c := range commands {
		node, err := cluster.MasterForKey(ctx, c.Key)
		if err != nil {
			c.SetErr(err)
			errs[i] = err
			continue
		}
		nodes[node] = append(nodes[node], i)
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
