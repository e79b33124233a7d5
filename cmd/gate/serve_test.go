package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/redistest"
)

// writeFile writes a file for a gate to read.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// configure writes a gate's files into a folder, and returns the path of the
// configuration.
func configure(t *testing.T, dir, redisAddr, store string) string {
	t.Helper()
	path := filepath.Join(dir, "gate.yaml")
	writeFile(t, filepath.Join(dir, "catalog.yaml"), string(catalogfile.SampleYAML()))
	writeFile(t, path, fmt.Sprintf(`
listen: 127.0.0.1:0
catalog: catalog.yaml
redis: {addrs: ["%s"]}
store: {%s}
timeouts: {redis: 1s, store: 1s}
`, redisAddr, store))
	return path
}

func serveOn(t *testing.T, dir, redisAddr string) *process {
	t.Helper()
	return start(t, "serve", "--config", configure(t, dir, redisAddr, "bbolt: {path: sendgate.db}"))
}

func TestServeReloadsItsCatalog(t *testing.T) {
	dir := t.TempDir()
	gate := serveOn(t, dir, redistest.Start(t).Addr())
	catalog := filepath.Join(dir, "catalog.yaml")
	check := `{"notification_id":"n","user_id":"u","topic":"fresh","channel":"push"}`
	if status, answer := gate.send(http.MethodPost, "/v1/check", check); status != http.StatusUnprocessableEntity || answer["code"] != "unknown_topic" {
		t.Errorf("before the reload: %d, %v", status, answer)
	}
	hangup := func() {
		if err := gate.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, catalog, string(catalogfile.SampleYAML())+"  fresh: {category: transactional}\n")
	hangup()
	gate.until("the new topic is known", func() bool {
		status, _ := gate.send(http.MethodPost, "/v1/check", check)
		return status == http.StatusOK
	})
	// A bad one is refused while the old one serves.
	writeFile(t, catalog, string(catalogfile.SampleYAML())+"  worse: {category: nonesuch}\n")
	hangup()
	gate.until("readiness shows the refusal", func() bool {
		status, body := gate.get("/readyz")
		return status == http.StatusOK && strings.Contains(body, "nonesuch")
	})
	if status, _ := gate.send(http.MethodPost, "/v1/check", check); status != http.StatusOK {
		t.Errorf("after a bad reload: %d", status)
	}
	if _, metrics := gate.get("/metrics"); !strings.Contains(metrics, `sendgate_catalog_reloads_total{result="refused"} 1`) {
		t.Error("the refusal is not counted")
	}
	if err := gate.stop(); err != nil {
		t.Errorf("it ended with %v\n%s", err, gate.stderr.String())
	}
	if strings.Contains(gate.stderr.String(), "panic") {
		t.Error(gate.stderr.String())
	}
}

func TestServeWhenRedisComesBackEmpty(t *testing.T) {
	server := redistest.Start(t)
	gate := serveOn(t, t.TempDir(), server.Addr())
	optOut := `{"preferences":[{"topic":"promotions","channel":"push","enabled":false},{"topic":"order_updates","channel":"push","enabled":false}]}`
	if status, answer := gate.send(http.MethodPatch, "/v1/users/u/preferences", optOut); status != http.StatusOK {
		t.Fatalf("%d, %v", status, answer)
	}
	verdict := func(topic string) string {
		_, a := gate.send(http.MethodPost, "/v1/check", `{"notification_id":"n","user_id":"u","topic":"`+topic+`","channel":"push"}`)
		return fmt.Sprint(a["verdict"], " ", a["reason"])
	}
	server.Kill()
	// An opt-out made while Redis is away is acknowledged, and obeyed.
	if status, answer := gate.send(http.MethodPatch, "/v1/users/v/preferences", optOut); status != http.StatusOK {
		t.Fatalf("%d, %v", status, answer)
	}
	for _, topic := range []string{"promotions", "order_updates"} {
		if got := verdict(topic); got != "suppress opted_out" {
			t.Errorf("%s with Redis down: %s", topic, got)
		}
	}
	server.Restart()
	gate.until("the gate follows the new Redis", func() bool {
		_, body := gate.get("/readyz")
		return strings.HasPrefix(body, `{"status":"ok"`)
	})
	for _, topic := range []string{"promotions", "order_updates"} {
		if got := verdict(topic); got != "suppress opted_out" {
			t.Errorf("%s with an empty Redis: %s", topic, got)
		}
	}
}
