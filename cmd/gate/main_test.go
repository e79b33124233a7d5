package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/redistest"
)

// asGate in the environment makes the test binary run as the program.
const asGate = "SENDGATE_TEST_RUN_AS_GATE"

func TestMain(m *testing.M) {
	if os.Getenv(asGate) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a gate that runs as a process of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	stdout *bufio.Reader
	stderr redistest.Output
}

// gateCommand is the program with arguments, not started.
func gateCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asGate+"=1")
	return cmd
}

// start runs a gate and waits until it says where it listens.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: gateCommand(t, args...)}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	p.stdout = bufio.NewReader(out)
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		p.kill()
		t.Fatalf("the gate ended: %v\n%s", err, p.stderr.String())
	}
	go func() { _, _ = io.Copy(io.Discard, p.stdout) }()
	_, addr, _ := strings.Cut(line, "http://")
	p.url = "http://" + strings.TrimSpace(addr)
	p.until("ready", func() bool { status, _ := p.get("/readyz"); return status == http.StatusOK })
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// stop asks the gate to end, and returns how it did.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

// until waits for a condition.
func (p *process) until(what string, holds func() bool) {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(time.Minute); !holds(); {
		select {
		case <-tick.C:
		case <-limit:
			p.t.Fatalf("waited in vain: %s\n%s", what, p.stderr.String())
		}
	}
}

func (p *process) get(path string) (status int, body string) {
	response, err := http.Get(p.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(data)
}

// send sends a body, and returns the answer's members. Status 0 is no answer.
func (p *process) send(method, path, body string) (status int, members map[string]any) {
	request, err := http.NewRequestWithContext(context.Background(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&members); err != nil {
		return 0, nil
	}
	return response.StatusCode, members
}
