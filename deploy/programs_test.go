package deploy_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// client does not wait longer for an answer than a test waits for anything.
var client = &http.Client{Timeout: patience}

// gate is one that runs in a container.
type gate struct {
	program
	t   *testing.T
	url string
}

// start starts a gate and waits until it takes traffic.
func (c *container) start(t *testing.T, env []string, args ...string) *gate {
	t.Helper()
	g := &gate{program: c.command(t, env, "gate", args...), t: t}
	out, err := g.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Process.Kill() // an error says that it has ended
		if _ = g.Wait(); t.Failed() {
			t.Logf("the gate's log:\n%s", g.log)
		}
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	_, address, found := strings.Cut(line, "http://")
	if err != nil || !found {
		t.Fatalf("the gate says %q: %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	g.url = "http://" + strings.TrimSpace(address)
	until(t, "the gate is ready", func() bool { return g.status("/readyz") == http.StatusOK })
	return g
}

// stop ends a gate as an orchestrator does.
func (g *gate) stop() {
	g.t.Helper()
	if err := g.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
	if err := g.Wait(); err != nil {
		g.t.Errorf("the gate ended with %v", err)
	}
}

func (g *gate) status(path string) int {
	g.t.Helper()
	response, err := client.Get(g.url + path)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// metrics are what Prometheus reads.
func (g *gate) metrics() string {
	g.t.Helper()
	response, err := client.Get(g.url + "/metrics")
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(text)
}

// send sends a body and returns the members of the answer, which must be 200.
func (g *gate) send(method, path, body string) (answer map[string]any) {
	g.t.Helper()
	request, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		g.t.Fatalf("%s %s: %d %v (%v)", method, path, response.StatusCode, answer, err)
	}
	return answer
}

// TestTheGateNeedsNothingOfItsMachine runs a gate where there is no file but
// the programs: no library, no time zones, no certificates. Two folders are
// there, of which the image has one.
func TestTheGateNeedsNothingOfItsMachine(t *testing.T) {
	c := newContainer(t, "/data", "/tmp")
	if found := c.files(t); len(found) > 0 {
		t.Fatalf("the root is not empty: %v", found)
	}
	g := c.start(t, nil, "dev", "--addr", "127.0.0.1:0", "--data", "/data")
	if status := g.status("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz is %d", status)
	}
	g.send(http.MethodPatch, "/v1/users/u_1/preferences", `{"quiet_hours":{"start":"22:00","end":"08:00","timezone":"America/New_York"}}`)
	for at, want := range map[string]any{
		"2026-12-02T04:30:00Z": "2026-12-02T13:00:00.000Z", // 23:30 there, until 08:00 of winter
		"2026-07-02T03:30:00Z": "2026-07-02T12:00:00.000Z", // and of summer
		"2026-12-02T18:00:00Z": nil,
	} {
		answer := g.send(http.MethodPost, "/v1/explain", `{"notification_id":"n_1","user_id":"u_1","topic":"newsletter","channel":"email","at":"`+at+`"}`)
		if answer["deliver_at"] != want {
			t.Errorf("at %s the answer is %v, want %v", at, answer, want)
		}
	}
	g.stop()
}

// TestTheProgramsSayWhatTheyAre where there is nothing else.
func TestTheProgramsSayWhatTheyAre(t *testing.T) {
	c := newContainer(t)
	for _, pkg := range packagesBuilt(t) {
		name := filepath.Base(pkg)
		for argument, want := range map[string]string{"version": version, "--help": "Usage: " + name} {
			cmd := c.command(t, nil, name, argument)
			if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s %s: %v\n%s%s", name, argument, err, out, cmd.log)
			}
		}
	}
}
