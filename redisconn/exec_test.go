package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/redisconn"
)

// sets are commands about keys of every node, with the key as the value.
func sets(ctx context.Context) (commands []redisconn.Command) {
	for i := range 60 {
		key := fmt.Sprint("key", i)
		commands = append(commands, redisconn.Command{Key: key, Cmder: redis.NewStatusCmd(ctx, "set", key, key)})
	}
	return commands
}

func TestExec(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"single": redistest.Start(t).Client(), "embedded": redistest.Embedded(t), "cluster": redistest.StartCluster(t).Client(),
	} {
		t.Run(name, func(t *testing.T) {
			redisconn.Exec(t.Context(), client, nil)
			commands := sets(t.Context())
			refused := redis.NewCmd(t.Context(), "incr", "key0")
			commands = append(commands, redisconn.Command{Key: "key0", Cmder: refused})
			redisconn.Exec(t.Context(), client, commands)
			for _, c := range commands[:60] {
				if got, err := client.Get(t.Context(), c.Key).Result(); c.Err() != nil || err != nil || got != c.Key {
					t.Errorf("%s: %v, then %q, %v", c.Key, c.Err(), got, err)
				}
			}
			if refused.Err() == nil {
				t.Error("what Redis refuses has no error")
			}
		})
	}
}

// TestANodeThatDoesNotAnswer has one master hang, and be gone: it costs the
// commands about its own keys, within the time there is, and no others.
func TestANodeThatDoesNotAnswer(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client, ill := cluster.Client(), cluster.Masters()[1]
	redisconn.Exec(t.Context(), client, sets(t.Context())) // connects to all
	for _, c := range []struct {
		how   string
		bring func()
	}{
		{"hangs", func() {
			if err := ill.Client().Do(t.Context(), "CLIENT", "PAUSE", time.Minute.Milliseconds(), "ALL").Err(); err != nil {
				t.Fatal(err)
			}
		}},
		{"is gone", ill.Kill},
	} {
		c.bring()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		commands := sets(ctx)
		redisconn.Exec(ctx, client, commands)
		cancel()
		lost := 0
		for _, command := range commands {
			node, err := client.(*redis.ClusterClient).MasterForKey(t.Context(), command.Key)
			if err != nil {
				t.Fatal(err)
			}
			its := node.Options().Addr == ill.Addr()
			if its != (command.Err() != nil) {
				t.Errorf("a master %s; of %s: %v", c.how, node.Options().Addr, command.Err())
			}
			if its {
				lost++
			}
		}
		if lost == 0 || lost == len(commands) {
			t.Errorf("a master %s, which has %d of %d keys", c.how, lost, len(commands))
		}
	}
}

// TestWhatHasMoved has a slot move to another master without the client
// knowing.
func TestWhatHasMoved(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client, to := cluster.Client(), cluster.Masters()[2]
	redisconn.Exec(t.Context(), client, sets(t.Context()))
	key := ""
	var slot int64
	for i := range 60 {
		key = fmt.Sprint("key", i)
		slot = client.ClusterKeySlot(t.Context(), key).Val()
		if node, err := client.(*redis.ClusterClient).MasterForKey(t.Context(), key); err == nil && node.Options().Addr != to.Addr() {
			break
		}
	}
	if err := client.Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	id, err := to.Client().Do(t.Context(), "CLUSTER", "MYID").Text()
	for _, m := range []*redistest.Server{to, cluster.Masters()[0], cluster.Masters()[1]} {
		if err == nil {
			err = m.Client().Do(t.Context(), "CLUSTER", "SETSLOT", slot, "NODE", id).Err()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	set := redisconn.Command{Key: key, Cmder: redis.NewStatusCmd(t.Context(), "set", key, "moved")}
	redisconn.Exec(t.Context(), client, []redisconn.Command{set})
	if err := set.Err(); err != nil {
		t.Errorf("the first after a move: %v", err)
	}
	if got, err := to.Client().Get(t.Context(), key).Result(); err != nil || got != "moved" {
		t.Errorf("the master that it moved to has %q, %v", got, err)
	}
}

// TestExecWithoutTime sends nothing once its time is over.
func TestExecWithoutTime(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, client := range map[string]redis.UniversalClient{"single": redistest.Start(t).Client(), "cluster": redistest.StartCluster(t).Client()} {
		commands := sets(ended)
		redisconn.Exec(ended, client, commands)
		for _, c := range commands {
			if !errors.Is(c.Err(), context.Canceled) {
				t.Fatalf("%s: %v", name, c.Err())
			}
		}
	}
}
