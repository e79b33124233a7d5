package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/redisconn"
)

// TestPipesToARedisThatFails hangs, and is gone, under a crowd: everybody is told
// within their time, and when it is back all is as before.
func TestPipesToARedisThatFails(t *testing.T) {
	const limit = 250 * time.Millisecond
	server := redistest.Start(t)
	client := server.Client()
	pipes := redisconn.NewPipes(client)
	ask := func(want string, fails bool) {
		t.Helper()
		var crowd sync.WaitGroup
		for caller := range 200 {
			crowd.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				began := time.Now()
				command, _ := echo(ctx, fmt.Sprint("k", caller))
				err := pipes.Exec(ctx, []redisconn.Command{command})[0]
				if took := time.Since(began); took > 4*limit || fails && err == nil {
					t.Errorf("%s: %v after %v", want, err, took)
				}
			})
		}
		crowd.Wait()
		redistest.Until(t, "nothing is left under way", func() bool { return pipes.Busy() == 0 })
	}
	ask("up", false)
	if err := client.Do(t.Context(), "CLIENT", "PAUSE", time.Minute.Milliseconds(), "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	ask("hangs", true)
	server.Kill()
	ask("gone", true)
	server.Restart()
	redistest.Until(t, "it is back", func() bool {
		command, _ := echo(t.Context(), "k")
		return pipes.Exec(t.Context(), []redisconn.Command{command})[0] == nil
	})
	ask("back", false)
}

// TestPipesToANodeThatHangs has one master of three hang under a crowd: it costs
// the commands about its own keys, and no others.
func TestPipesToANodeThatHangs(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client, ill := cluster.Client().(*redis.ClusterClient), cluster.Masters()[1]
	pipes := redisconn.NewPipes(client)
	redisconn.Exec(t.Context(), client, sets(t.Context())) // connects to all
	if err := ill.Client().Do(t.Context(), "CLIENT", "PAUSE", time.Minute.Milliseconds(), "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	var crowd sync.WaitGroup
	for caller := range 100 {
		crowd.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			command, _ := echo(ctx, fmt.Sprint("key", caller))
			err := pipes.Exec(ctx, []redisconn.Command{command})[0]
			node, nodeErr := client.MasterForKey(t.Context(), command.Key)
			if nodeErr != nil || (node.Options().Addr == ill.Addr()) != (err != nil) {
				t.Errorf("%s: %v, %v", command.Key, err, nodeErr)
			}
		})
	}
	crowd.Wait()
	redistest.Until(t, "nothing is left under way", func() bool { return pipes.Busy() == 0 })
}

// broken is a connection that breaks under pipelines that are shared.
type broken struct{}

func (broken) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (broken) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (broken) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, commands []redis.Cmder) error {
		for _, c := range commands {
			c.SetErr(io.EOF)
		}
		return io.EOF
	}
}

// TestALostPipelineCountsOnce has fifty callers lose one pipeline, and as many leave
// before there is one: one error of all is not of somebody who followed.
func TestALostPipelineCountsOnce(t *testing.T) {
	var failed, counted atomic.Int64
	note := func(err error) {
		if err == nil {
			return
		}
		if failed.Add(1); !redisconn.Followed(err) {
			counted.Add(1)
		}
	}
	pipes, client, under := heldFor(t, 500*time.Millisecond, note)
	client.AddHook(broken{})
	hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for i := range 100 {
		under.Go(func() {
			ctx, want := t.Context(), io.EOF
			if i%2 == 0 {
				ctx, want = hurried, context.DeadlineExceeded
			}
			command, _ := echo(ctx, "k")
			err := pipes.Exec(ctx, []redisconn.Command{command})[0]
			if note(err); !errors.Is(err, want) {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	under.Wait()
	if f, c := failed.Load(), counted.Load(); f != 101 || c != 1 {
		t.Errorf("%d have failed, and %d of them count", f, c)
	}
}
