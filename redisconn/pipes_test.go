package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/redisconn"
)

// echo is a command whose answer is its own text.
func echo(ctx context.Context, key string) (redisconn.Command, *redis.Cmd) {
	cmd := redis.NewCmd(ctx, "eval", "return ARGV[1]", 1, key, key)
	cmd.SetFirstKeyPos(3)
	return redisconn.Command{Key: key, Cmder: cmd}, cmd
}

// TestPipes has a crowd of callers, some with lists, some of which Redis refuses:
// everybody has the answers to their own commands.
func TestPipes(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"single": redistest.Start(t).Client(), "embedded": redistest.Embedded(t), "cluster": redistest.StartCluster(t).Client(),
	} {
		t.Run(name, func(t *testing.T) {
			pipes := redisconn.NewPipes(client)
			if errs := pipes.Exec(t.Context(), nil); len(errs) > 0 {
				t.Error(errs)
			}
			var crowd sync.WaitGroup
			for caller := range 40 {
				crowd.Go(func() {
					for round := range 10 {
						var commands []redisconn.Command
						var replies []*redis.Cmd
						for i := range 1 + caller%20 {
							command, reply := echo(t.Context(), fmt.Sprint("key", caller, "-", round, "-", i))
							commands, replies = append(commands, command), append(replies, reply)
						}
						refused := redis.NewCmd(t.Context(), "nonsense")
						commands = append(commands, redisconn.Command{Key: "key", Cmder: refused})
						errs := pipes.Exec(t.Context(), commands)
						for i, reply := range replies {
							if got, _ := reply.Text(); errs[i] != nil || got != commands[i].Key {
								t.Errorf("%s: %q, %v", commands[i].Key, got, errs[i])
							}
						}
						if errs[len(replies)] == nil {
							t.Error("what Redis refuses has no error")
						}
					}
				})
			}
			crowd.Wait()
			redistest.Until(t, "nothing is left under way", func() bool { return pipes.Busy() == 0 })
		})
	}
}

// counted counts the pipelines that a client sends.
type counted struct{ pipelines, commands atomic.Int64 }

func (c *counted) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (c *counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (c *counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if len(commands) > 4 { // a new connection says hello in one, too
			c.pipelines.Add(1)
			c.commands.Add(int64(len(commands)))
		}
		return next(ctx, commands)
	}
}

// held is a Redis that takes commands and does not answer for a while, and pipes
// to it under which as many pipelines as go at once are under way.
func held(t *testing.T, pause time.Duration) (pipes *redisconn.Pipes, client redis.UniversalClient, under *sync.WaitGroup) {
	t.Helper()
	return heldFor(t, pause, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
}

// heldFor is held, and is told what became of each of the commands.
func heldFor(t *testing.T, pause time.Duration, told func(error)) (pipes *redisconn.Pipes, client redis.UniversalClient, under *sync.WaitGroup) {
	t.Helper()
	server := redistest.Start(t)
	client = server.Client()
	if err := client.Do(t.Context(), "CLIENT", "PAUSE", pause.Milliseconds(), "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	pipes, under = redisconn.NewPipes(client), &sync.WaitGroup{}
	for range 3 { // two that go at once, and one more
		under.Go(func() {
			command, _ := echo(t.Context(), "early")
			told(pipes.Exec(t.Context(), []redisconn.Command{command})[0])
		})
	}
	redistest.Until(t, "somebody has to wait", func() bool { return pipes.Waiting() > 0 })
	return pipes, client, under
}

// TestACrowdSharesPipelines counts what fifty callers take who come while Redis is
// busy with others.
func TestACrowdSharesPipelines(t *testing.T) {
	pipes, client, under := held(t, 300*time.Millisecond)
	var count counted
	client.AddHook(&count)
	for range 50 {
		under.Go(func() {
			command, _ := echo(t.Context(), "k")
			if err := pipes.Exec(t.Context(), []redisconn.Command{command})[0]; err != nil {
				t.Error(err)
			}
		})
	}
	under.Wait()
	if p, c := count.pipelines.Load(), count.commands.Load(); p != 1 || c < 50 {
		t.Errorf("%d pipelines with %d commands", p, c)
	}
}

// TestWhoDoesNotWait has more callers than may wait: the others go by themselves,
// and all have their answers.
func TestWhoDoesNotWait(t *testing.T) {
	const room = 10
	pipes, _, under := held(t, 300*time.Millisecond)
	pipes.SetRoom(room)
	for range 40 {
		under.Go(func() {
			command, _ := echo(t.Context(), "k")
			if err := pipes.Exec(t.Context(), []redisconn.Command{command})[0]; err != nil {
				t.Error(err)
			}
		})
	}
	redistest.Until(t, "there is no more room", func() bool { return pipes.Waiting() == room })
	under.Wait()
	redistest.Until(t, "nothing is left under way", func() bool { return pipes.Busy() == 0 })
}

// TestWhoLeaves has callers give up, and others with less time than those they
// share with: each leaves when its own time is over, and the others have their
// answers.
func TestWhoLeaves(t *testing.T) {
	pipes, client, under := held(t, 400*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	began := time.Now()
	for i := range 30 {
		under.Go(func() {
			ctx, want := []context.Context{ctx, short, t.Context()}[i%3], []error{context.Canceled, context.DeadlineExceeded, nil}[i%3]
			key := fmt.Sprint("left", i)
			set := redisconn.Command{Key: key, Cmder: redis.NewStatusCmd(ctx, "set", key, 1)}
			err := pipes.Exec(ctx, []redisconn.Command{set})[0]
			if took := time.Since(began); !errors.Is(err, want) || want != nil && took > 300*time.Millisecond {
				t.Errorf("caller %d: %v after %v", i, err, took)
			}
		})
	}
	redistest.Until(t, "all of them wait", func() bool { return pipes.Waiting() >= 20 })
	cancel()
	under.Wait()
	for i := range 30 {
		if n, err := client.Exists(t.Context(), fmt.Sprint("left", i)).Result(); err != nil || (n == 1) != (i%3 == 2) {
			t.Errorf("%d: what was taken back before it was sent has run, or the other way round: %d, %v", i, n, err)
		}
	}
}

// TestLeavingAtAnyMoment has a crowd whose contexts end at random, in the midst of
// pipelines too. The race detector sees whether anybody looks at a command that is
// still being read.
func TestLeavingAtAnyMoment(t *testing.T) {
	server := redistest.Start(t)
	pipes := redisconn.NewPipes(server.Client())
	var crowd sync.WaitGroup
	var left, answered atomic.Int64
	for caller := range 32 {
		crowd.Go(func() {
			for round := range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				if caller%2 == 0 {
					time.AfterFunc(rand.N(500*time.Microsecond), cancel)
				}
				command, reply := echo(ctx, fmt.Sprint(caller, "-", round))
				err := pipes.Exec(ctx, []redisconn.Command{command})[0]
				if err == nil {
					answered.Add(1)
					if got, err := reply.Text(); err != nil || got != command.Key {
						t.Errorf("%s: %q, %v", command.Key, got, err)
					}
				} else if left.Add(1); caller%2 == 1 {
					t.Errorf("%s: %v", command.Key, err)
				}
				cancel()
			}
		})
	}
	crowd.Wait()
	t.Logf("%d had answers, %d left", answered.Load(), left.Load())
	redistest.Until(t, "nothing is left under way", func() bool { return pipes.Busy() == 0 })
}

// BenchmarkPipes has 64 callers run a small script each, alone and by pipes.
func BenchmarkPipes(b *testing.B) {
	client := redistest.Start(b).Client()
	pipes := redisconn.NewPipes(client)
	for name, run := range map[string]func(ctx context.Context, c redisconn.Command) error{
		"alone": func(ctx context.Context, c redisconn.Command) error { return client.Process(ctx, c) },
		"shared": func(ctx context.Context, c redisconn.Command) error {
			return pipes.Exec(ctx, []redisconn.Command{c})[0]
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					command, _ := echo(b.Context(), "k")
					if err := run(b.Context(), command); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
