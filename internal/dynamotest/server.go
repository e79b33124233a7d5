package dynamotest

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

//go:embed serve.js
var serve string

// startLimit is how long the server may take to listen, on a machine that is
// busy with other tests.
const startLimit = 30 * time.Second

// Server is one DynamoDB, without tables at first, that keeps nothing on disk.
type Server struct {
	addr string
}

// Start starts a server on a free port of 127.0.0.1 and returns once it
// listens. It is killed when the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	folder, err := dynalite()
	if err != nil {
		t.Fatalf("dynalite is not installed here, and this test needs a DynamoDB: run `make engines` (%v)", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("node is not installed here, and this test needs a DynamoDB that runs in it: run `make engines` (%v)", err)
	}
	p, err := run(exec.CommandContext(context.Background(), node, "-e", serve, folder))
	if err != nil {
		t.Fatalf("dynalite did not start: %v", err)
	}
	t.Cleanup(func() {
		if p.kill() {
			t.Errorf("dynalite ended before the test did, and said: %s", p.complaints.String())
		} else if p.complaints.Len() > 0 { // it may have been ending
			t.Logf("dynalite said: %s", p.complaints.String())
		}
	})
	return &Server{addr: p.addr}
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return s.addr }

// Endpoint is the server's URL.
func (s *Server) Endpoint() string { return "http://" + s.addr }

// Config is what a client of this server needs. The server takes any
// credentials; these open nothing.
func (s *Server) Config() aws.Config { return Config(s.Endpoint()) }

// Config is what a client of a server that plays DynamoDB at an endpoint needs.
func Config(endpoint string) aws.Config {
	return aws.Config{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String(endpoint),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test", Source: "package dynamotest"}, nil
		}),
	}
}

// dynalite finds the folder that `make engines` installs it in, from wherever
// in the module the test runs.
func dynalite() (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return "", errors.New("the test does not run in a folder of the module")
		}
		root = filepath.Dir(root)
	}
	folder := filepath.Join(root, "tools", "node_modules", "dynalite")
	_, err = os.Stat(filepath.Join(folder, "index.js"))
	return folder, err
}

// process is a running server.
type process struct {
	addr       string
	cmd        *exec.Cmd
	complaints strings.Builder // to be read when it is gone
	gone       chan struct{}   // closed then
}

// run starts the server and waits until it says where it listens. Its standard
// input is a pipe that nobody writes to: the system closes it with this process,
// however that ends, and the server ends then.
func run(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, gone: make(chan struct{})}
	cmd.Stderr = &p.complaints
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := make(chan string, 1)
	go func() {
		defer close(p.gone)
		read := bufio.NewReader(output)
		if line, err := read.ReadString('\n'); err == nil {
			lines <- line
		}
		_, _ = io.Copy(io.Discard, read)
		_ = cmd.Wait() // it is killed, or has said why it ended
	}()
	select {
	case line := <-lines:
		port, ok := strings.CutPrefix(strings.TrimSpace(line), "port ")
		if ok {
			p.addr = net.JoinHostPort("127.0.0.1", port)
			return p, nil
		}
		err = fmt.Errorf("it said %q", line)
	case <-p.gone:
		err = errors.New("it ended at once")
	case <-time.After(startLimit):
		err = fmt.Errorf("it did not listen within %s", startLimit)
	}
	p.kill()
	return nil, fmt.Errorf("%w; it complained: %s", err, p.complaints.String())
}

// kill ends the server and returns when it is gone, and whether it was gone
// before.
func (p *process) kill() (before bool) {
	select {
	case <-p.gone:
		return true
	default:
	}
	_ = p.cmd.Process.Kill() // an error says that it has just ended
	<-p.gone
	return false
}
