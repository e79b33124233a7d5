package deploy_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// engine is a server that a test has started, and which the test's end kills.
type engine struct {
	cmd  *exec.Cmd
	addr string
}

// startDynalite starts the program of the dynalite image on a free port.
func startDynalite(t *testing.T, folder string) *engine {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join(root, "tools", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "dynalite")); err != nil {
		t.Fatalf("dynalite is not installed here: run `make engines` (%v)", err)
	}
	cmd := exec.Command("node", "dynalite.js", folder, "127.0.0.1:0")
	cmd.Env, cmd.Stderr = append(os.Environ(), "NODE_PATH="+modules), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	port, found := strings.CutPrefix(strings.TrimSpace(line), "port ")
	if err != nil || !found {
		t.Fatalf("dynalite says %q: %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return &engine{cmd, net.JoinHostPort("127.0.0.1", port)}
}

// ask is one call of DynamoDB's protocol.
func (e *engine) ask(t *testing.T, operation, body string) (answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+e.addr, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	request.Header.Set("X-Amz-Date", "20261130T000000Z")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any/20261130/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=any")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s (%v)", operation, response.StatusCode, data, err)
	}
	return string(data)
}

// breakOff begins a call and goes away in the middle of it.
func (e *engine) breakOff(t *testing.T) {
	t.Helper()
	c, err := net.DialTimeout("tcp", e.addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: dynamodb\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).SetLinger(0); err != nil { // the other side is told of a reset
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDynaliteLivesOn through clients that go away, keeps what it was told when
// it is ended, and says so to who asks for its health.
func TestDynaliteLivesOn(t *testing.T) {
	folder := t.TempDir()
	first := startDynalite(t, folder)
	first.ask(t, "CreateTable", `{"TableName":"kept","KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}`)
	for range 20 {
		first.breakOff(t)
	}
	first.ask(t, "ListTables", "{}")
	first.healthy(t)
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if tables := startDynalite(t, folder).ask(t, "ListTables", "{}"); !strings.Contains(tables, `"kept"`) {
		t.Errorf("it remembers %s", tables)
	}
}

// healthy runs the health check of the image.
func (e *engine) healthy(t *testing.T) {
	t.Helper()
	check := healthCheck(t, composed(t).Services["dynamodb"])
	_, port, _ := net.SplitHostPort(e.addr)
	for i := range check {
		check[i] = strings.ReplaceAll(check[i], ":8000", ":"+port)
	}
	if out, err := exec.CommandContext(t.Context(), check[0], check[1:]...).CombinedOutput(); err != nil {
		t.Errorf("%q: %v\n%s", check, err, out)
	}
}

// startRedis starts redis-server as docker-compose.yml does, and waits until
// its health check says that it is well.
func startRedis(t *testing.T) (addr string) {
	t.Helper()
	service := composed(t).Services["redis"]
	var log bytes.Buffer
	for range 5 { // another process may take the port in between
		port := freePort(t)
		cmd := exec.Command(service.Command[0], append(service.Command[1:], "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir())...)
		cmd.Stdout, cmd.SysProcAttr = &log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatalf("redis-server is not installed here: run `make engines` (%v)", err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-ended
		})
		if answers(t, slices.Insert(healthCheck(t, service), 1, "-p", port), ended) {
			return net.JoinHostPort("127.0.0.1", port)
		}
	}
	t.Fatalf("redis-server does not start:\n%s", log.String())
	return ""
}

// answers runs a health check until it succeeds, or the server has ended.
func answers(t *testing.T, check []string, ended <-chan struct{}) bool {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); ; {
		if exec.CommandContext(t.Context(), check[0], check[1:]...).Run() == nil {
			return true
		}
		select {
		case <-ended:
			return false
		case <-limit:
			t.Fatalf("waited in vain: %q", check)
		case <-tick.C:
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
