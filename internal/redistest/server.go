package redistest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/redisconn"
)

// Server is one real Redis, empty at first, that keeps nothing on disk unless
// its options say otherwise.
type Server struct {
	t       testing.TB
	path    string
	dir     string
	port    int
	busPort int      // of the cluster bus; 0 where there is none
	tlsPort int      // 0 where there is none
	config  string   // file of a Sentinel's configuration; empty: a Redis
	secret  string   // password of the default user
	extra   []string // options beyond the common ones
	process *process // nil while killed
}

// Start starts a Redis on a free port of 127.0.0.1 and returns once it answers.
// It is killed when the test ends. Options beyond the common ones are those of
// redis-server's command line, such as "--maxmemory", "10mb".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	return start(t, func(s *Server) { s.extra = options })
}

// attempts is how many ports are tried. Between finding a free one and the
// server's taking it, somebody else may.
const attempts = 10

// start starts a server. prepare sets what depends on the ports, and is called
// again for others.
func start(t testing.TB, prepare func(*Server)) *Server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("redis-server is not installed here, and this test needs a real one: run `make engines` (%v)", err)
	}
	s := &Server{t: t, path: path, dir: t.TempDir()}
	t.Cleanup(s.Kill)
	for range attempts {
		s.port = freePort(t)
		prepare(s)
		if err = s.run(); err == nil {
			return s
		}
	}
	t.Fatalf("redis-server did not start on any of %d ports: %v", attempts, err)
	return nil
}

// Addr is the server's host:port. It stays the same over a Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Client opens a client as the programs do. Every call makes another one; it is
// closed when the test ends.
func (s *Server) Client() redis.UniversalClient {
	s.t.Helper()
	return open(s.t, redisconn.Options{Addrs: []string{s.Addr()}})
}

// Kill ends the server at once, as `kill -9` does, and returns when it is gone.
// Killing a killed server does nothing.
func (s *Server) Kill() {
	if s.process != nil {
		s.process.kill()
		s.process = nil
	}
}

// Signal sends the server a signal, such as SIGSTOP. A killed server gets none.
func (s *Server) Signal(signal os.Signal) {
	s.t.Helper()
	if s.process == nil {
		return
	}
	if err := s.process.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// Restart starts the server again on its port, after a Kill or in place of one:
// empty, unless its options have it keep a file.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	var err error
	for range attempts {
		if err = s.run(); err == nil {
			return
		}
	}
	s.t.Fatalf("redis-server did not start again on %s: %v", s.Addr(), err)
}

// run starts the process and waits until it answers under its own process id:
// another program may hold the port.
func (s *Server) run() error {
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--loglevel", "warning"}
	if s.config == "" {
		args = append(args, "--save", "", "--appendonly", "no", "--enable-debug-command", "local")
	} else {
		args = append([]string{s.config, "--sentinel"}, args...)
	}
	p, err := startProcess(s.path, append(args, s.extra...)...)
	if err != nil {
		return err
	}
	client := redis.NewClient(s.lookOptions())
	defer client.Close()
	own := fmt.Sprintf("process_id:%d\r\n", p.pid)
	answers := func() bool {
		if conn, err := net.Dial("tcp", s.Addr()); err != nil { // asked first, as the client logs its failures
			return false
		} else if conn.Close() != nil {
			return false
		}
		info, err := client.Info(context.Background(), "server").Result()
		return err == nil && strings.Contains(info, own)
	}
	if !poll(answers, p.ended) {
		p.kill()
		return fmt.Errorf("port %d: redis-server gave no answer; it said: %s", s.port, p.output())
	}
	s.process = p
	return nil
}

// lookOptions are those of a client that looks at the server and does not wait.
func (s *Server) lookOptions() *redis.Options {
	return &redis.Options{Addr: s.Addr(), Password: s.secret, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second}
}

func open(t testing.TB, o redisconn.Options) redis.UniversalClient {
	t.Helper()
	client, err := redisconn.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Ports are taken from below the range that systems use for outgoing
// connections, so that one is still free after a Kill.
const (
	firstPort = 12_000
	lastPort  = 31_999
)

func freePort(t testing.TB) int {
	t.Helper()
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("no free port: %v", err)
	return 0
}
