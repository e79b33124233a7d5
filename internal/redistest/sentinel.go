package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/redisconn"
)

// MasterName is what the Sentinels of a test call the master.
const MasterName = "gatekeeper"

const (
	sentinels = 3
	quorum    = 2
	// downAfter is for how long a Redis says nothing before it is held to be
	// down, in milliseconds. A busy machine must not look like that.
	downAfter = 2000
)

// Sentinels are a real master, its replica, and three Sentinels that watch
// over them.
type Sentinels struct {
	t       testing.TB
	Master  *Server // until it is failed over
	Replica *Server
	Watch   []*Server // the Sentinels
}

// StartSentinels starts them and returns once every Sentinel knows of the
// others and of the replica, which takes them two to four seconds. They ask for
// a password if it is not empty.
func StartSentinels(t testing.TB, password string) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t, Master: Start(t)}
	// Without a pause, as nothing else is to be waited for.
	s.Replica = Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(s.Master.port), "--repl-diskless-sync-delay", "0")
	if err := s.Master.Client().ConfigSet(context.Background(), "repl-diskless-sync-delay", "0").Err(); err != nil {
		t.Fatal(err)
	}
	Until(t, "the replica follows", s.Replica.IsReplica)
	for range sentinels {
		s.Watch = append(s.Watch, start(t, func(w *Server) { w.config, w.secret = s.write(password), password }))
	}
	for _, w := range s.Watch {
		client := redis.NewSentinelClient(&redis.Options{Addr: w.Addr(), Password: password, MaxRetries: -1})
		t.Cleanup(func() { _ = client.Close() })
		Until(t, "the Sentinel at "+w.Addr()+" knows of the others", func() bool {
			m, err := client.Master(context.Background(), MasterName).Result()
			return err == nil && m["num-slaves"] == "1" && m["num-other-sentinels"] == strconv.Itoa(sentinels-1) && m["flags"] == "master"
		})
	}
	return s
}

// write writes a Sentinel's configuration, which it writes to itself.
func (s *Sentinels) write(password string) (path string) {
	s.t.Helper()
	path = filepath.Join(s.t.TempDir(), "sentinel.conf")
	lines := []string{
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", MasterName, s.Master.port, quorum),
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", MasterName, downAfter),
		fmt.Sprintf("sentinel failover-timeout %s 3000", MasterName),
	}
	if password != "" {
		lines = append(lines, "requirepass "+password, "sentinel sentinel-pass "+password)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// Options are those of a client.
func (s *Sentinels) Options() redisconn.Options {
	o := redisconn.Options{Mode: "sentinel", MasterName: MasterName}
	for _, w := range s.Watch {
		o.Addrs = append(o.Addrs, w.Addr())
	}
	return o
}

// Client opens a client as the programs do. Every call makes another one; it is
// closed when the test ends.
func (s *Sentinels) Client() redis.UniversalClient {
	s.t.Helper()
	return open(s.t, s.Options())
}

// Failover kills the master and returns once the replica has been promoted.
func (s *Sentinels) Failover() {
	s.t.Helper()
	s.Master.Kill()
	Until(s.t, "the replica is promoted", s.Replica.IsMaster)
}

// AwaitNamed waits until every Sentinel names a server as the master.
func (s *Sentinels) AwaitNamed(master *Server) {
	s.t.Helper()
	for _, w := range s.Watch {
		client := redis.NewSentinelClient(&redis.Options{Addr: w.Addr(), Password: w.secret, MaxRetries: -1})
		Until(s.t, "the Sentinel at "+w.Addr()+" names "+master.Addr(), func() bool {
			addr, err := client.GetMasterAddrByName(context.Background(), MasterName).Result()
			return err == nil && net.JoinHostPort(addr[0], addr[1]) == master.Addr()
		})
		_ = client.Close()
	}
}
