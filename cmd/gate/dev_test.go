package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sendgate/sendgate/internal/cli"
)

// TestKilledDev kills a gate in a burst of opt-outs, several times over, and
// starts it again in the same folder: every opt-out that was answered with 200
// is obeyed.
func TestKilledDev(t *testing.T) {
	data := t.TempDir()
	var acknowledged []string
	for round := range 3 {
		gate := start(t, "dev", "--addr", "127.0.0.1:0", "--data", data)
		for _, user := range acknowledged {
			_, answer := gate.send(http.MethodPost, "/v1/check", `{"notification_id":"n","user_id":"`+user+`","topic":"promotions","channel":"push"}`)
			if answer["verdict"] != "suppress" || answer["reason"] != "opted_out" {
				t.Errorf("round %d: %s opted out, and the answer is %v", round, user, answer)
			}
		}
		acknowledged = append(acknowledged, burst(gate, round)...)
	}
	if len(acknowledged) < 300 {
		t.Errorf("only %d opt-outs were acknowledged", len(acknowledged))
	}
}

// burst opts users out from many callers at once until it has 100
// acknowledgements, kills the gate, and returns all who were acknowledged.
func burst(gate *process, round int) (acknowledged []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				user := fmt.Sprintf("u_%d_%d_%d", round, caller, i)
				status, _ := gate.send(http.MethodPatch, "/v1/users/"+user+"/preferences", `{"preferences":[{"topic":"promotions","channel":"push","enabled":false}]}`)
				if status != http.StatusOK {
					return
				}
				mu.Lock()
				if acknowledged = append(acknowledged, user); len(acknowledged) == 100 {
					_ = gate.cmd.Process.Kill()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return acknowledged
}

func TestDevSaysWhatItIs(t *testing.T) {
	data := filepath.Join(t.TempDir(), "new", "folder")
	gate := start(t, "dev", "--addr", "127.0.0.1:0", "--data", data)
	// Another gate cannot have the same folder.
	out, err := gateCommand(t, "dev", "--addr", "127.0.0.1:0", "--data", data).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("another process")) {
		t.Errorf("a second gate on the folder: %v, %s", err, out)
	}
	if err := gate.stop(); err != nil {
		t.Errorf("it ended with %v\n%s", err, gate.stderr.String())
	}
}

// TestDevRebuildsItsFilter makes a thousand changes, and waits for the filter
// that has them.
func TestDevRebuildsItsFilter(t *testing.T) {
	gate := start(t, "dev", "--addr", "127.0.0.1:0", "--data", t.TempDir())
	filter := func(name string) string {
		_, body := gate.get("/metrics")
		_, value, _ := strings.Cut(body, "\n"+name+" ")
		value, _, _ = strings.Cut(value, "\n")
		return value
	}
	gate.until("the first filter is in use", func() bool { return filter("sendgate_filter_verifying") == "0" })
	if keys := filter(`sendgate_filter_keys{kind="opt_out"}`); keys != "0" {
		t.Errorf("a filter of nobody has %s keys", keys)
	}
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 128 {
				gate.send(http.MethodPatch, fmt.Sprintf("/v1/users/u_%d_%d/preferences", caller, i), `{"preferences":[{"topic":"promotions","channel":"push","enabled":false}]}`)
			}
		})
	}
	callers.Wait()
	gate.until("the filter has them", func() bool {
		keys, _ := strconv.Atoi(filter(`sendgate_filter_keys{kind="opt_out"}`))
		return keys >= 1000 && filter("sendgate_filter_verifying") == "0"
	})
}

func TestAsk(t *testing.T) {
	gate := start(t, "dev", "--addr", "127.0.0.1:0", "--data", t.TempDir())
	ask := func(args ...string) (string, error) {
		var out, err bytes.Buffer
		failed := run(t.Context(), append(args, "--url", gate.url), cli.Streams{Out: &out, Err: &err})
		return out.String(), failed
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"check", "--id", "n1", "--user", "a b", "--topic", "promotions", "--channel", "push"},
			[]string{"ALLOW", "default_on, decided by step caps", "1 of 5 used in 24h by category"}},
		{[]string{"check", "--id", "n1", "--user", "a b", "--topic", "promotions", "--channel", "push", "--json"},
			[]string{`{"notification_id":"n1","user_id":"a b","verdict":"allow"`, `"used":1`}},
		{[]string{"explain", "--user", "a b", "--topic", "security_alerts", "--channel", "sms", "--campaign", "c", "--attribute", "region=eu", "--priority", "high"},
			[]string{"essential, decided by step global", "not asked: the category is essential"}},
	} {
		out, err := ask(c.args...)
		for _, want := range c.want {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%v: no %q in (%v)\n%s", c.args, want, err, out)
			}
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "--user", "u", "--topic", "nonesuch", "--channel", "push"}, "unknown_topic: topic: "},
		{[]string{"explain", "--user", "u", "--topic", "promotions", "--channel", "push", "--at", "noon"}, ": at: "},
		{[]string{"check", "--user=u\xff", "--topic", "promotions", "--channel", "push"}, "is not valid UTF-8"},
		{[]string{"check", "--user=u", "--id=n\xfe", "--topic", "promotions", "--channel", "push"}, "is not valid UTF-8"},
	} {
		if _, err := ask(c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}

func TestNoGateThere(t *testing.T) {
	err := run(t.Context(), []string{"check", "--url", "http://127.0.0.1:1", "--user", "u", "--topic", "t", "--channel", "c"}, cli.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), "cannot reach a gate") {
		t.Error(err)
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"version"}, cli.Streams{Out: &out, Err: &out}); err != nil || !strings.HasPrefix(out.String(), "sendgate ") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestBadArguments(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("default_timezone: Mars/Base\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "expected one of"},
		{[]string{"dev", "--bogus"}, "unknown flag --bogus"},
		{[]string{"serve"}, "missing flags: --config"},
		{[]string{"serve", "--config", "/nonexistent.yaml"}, "nonexistent.yaml"},
		{[]string{"dev", "--addr", "127.0.0.1:0", "--data", t.TempDir(), "--catalog", bad}, "bad.yaml:1: default_timezone: "},
		{[]string{"dev", "--addr", "127.0.0.1:99999", "--data", t.TempDir()}, "99999"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), c.args, cli.Streams{Out: &out, Err: &out}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}
