package redistest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStartGivesAnEmptyRedis(t *testing.T) {
	ctx := context.Background()
	first, second := redistest.Start(t), redistest.Start(t)
	if first.Addr() == second.Addr() {
		t.Fatalf("both are at %s", first.Addr())
	}
	if err := first.Client().Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := second.Client().Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("the second Redis holds the first one's key: %v", err)
	}
}

func TestKillAndRestart(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	client, addr := s.Client(), s.Addr()
	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Kill()
	if err := client.Ping(ctx).Err(); err == nil {
		t.Fatal("a killed Redis answers")
	}
	s.Restart()
	if s.Addr() != addr {
		t.Fatalf("moved from %s to %s", addr, s.Addr())
	}
	redistest.Until(t, "the old client reaches the new server", func() bool { return client.Ping(ctx).Err() == nil })
	if n := client.DBSize(ctx).Val(); n != 0 {
		t.Fatalf("%d keys outlived a restart", n)
	}
}

func TestClusterServesAllSlots(t *testing.T) {
	ctx := context.Background()
	c := redistest.StartCluster(t)
	if len(c.Addrs()) != 3 {
		t.Fatalf("masters at %v", c.Addrs())
	}
	client := c.Client()
	for i := range 300 {
		if err := client.Set(ctx, fmt.Sprintf("{%d}", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range c.Masters() {
		if n := m.Client().DBSize(ctx).Val(); n < 50 {
			t.Errorf("%s holds %d of 300 keys", m.Addr(), n)
		}
	}
}

func TestAClusterFailsOver(t *testing.T) {
	ctx := context.Background()
	c := redistest.StartReplicatedCluster(t)
	client := c.Client()
	for i := range 300 {
		if err := client.Set(ctx, fmt.Sprintf("{%d}", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	master, replica := c.Master()
	if !master.IsMaster() || replica.IsMaster() {
		t.Fatalf("%s is no master, or %s is one", master.Addr(), replica.Addr())
	}
	held := master.Client().DBSize(ctx).Val()
	redistest.Until(t, "the replica has everything", func() bool { return replica.Client().DBSize(ctx).Val() == held })
	master.Kill()
	redistest.Until(t, "the replica takes over", replica.IsMaster)
	c.AwaitServed(replica)
	master.Restart()
	redistest.Until(t, "the old master follows", func() bool { return master.Follows(replica) })
	c.AwaitWhole()
	if n := master.Client().DBSize(ctx).Val(); n != held || held < 50 {
		t.Errorf("it held %d of 300 keys, and holds %d now", held, n)
	}
}

func TestEmbedded(t *testing.T) {
	ctx := context.Background()
	client := redistest.Embedded(t)
	if got, err := client.Eval(ctx, "return redis.call('INCR', KEYS[1])", []string{"k"}).Int(); got != 1 || err != nil {
		t.Fatalf("got %d, %v", got, err)
	}
}

// fakeTB stands in for a test that is expected to fail.
type fakeTB struct {
	testing.TB
	said string
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestAMissingServerFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	fake := &fakeTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		redistest.Start(fake)
	}()
	<-done
	if !strings.Contains(fake.said, "make engines") {
		t.Fatalf("said %q", fake.said)
	}
}

// asChild makes this test binary one that starts a Redis and never ends.
const asChild = "REDISTEST_CHILD"

func TestChild(t *testing.T) {
	if os.Getenv(asChild) == "" {
		return // only of use when run by the test below
	}
	fmt.Fprintln(os.Stdout, "addr "+redistest.Start(t).Addr())
	select {}
}

func TestNoServerOutlivesAKilledTest(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // nothing of the kind is promised elsewhere
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), asChild+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addr string
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		addr, _ = strings.CutPrefix(lines.Text(), "addr ")
	}
	reachable := func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	if addr == "" || !reachable() {
		t.Fatalf("the child's Redis is not at %q", addr)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	redistest.Until(t, "the child's Redis is gone", func() bool { return !reachable() })
}
