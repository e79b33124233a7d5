package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sendgate/sendgate/internal/redistest"
)

// command runs the program to its end.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := gateCommand(t, args...).CombinedOutput()
	return string(out), err
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t, args...)
	if err != nil {
		t.Fatalf("gate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TestDecisionLog keeps a log that is rotated, loses Redis, and counts again what
// was charged: what `gate caps` shows is as before, and the cap is full.
func TestDecisionLog(t *testing.T) {
	server, dir := redistest.Start(t), t.TempDir()
	conf := configure(t, dir, server.Addr(), "bbolt: {path: sendgate.db}")
	log, moved := filepath.Join(dir, "decisions.jsonl"), filepath.Join(dir, "decisions.jsonl.1")
	gate := start(t, "serve", "--config", conf, "--decision-log", log)
	verdicts := func(from, to int) (all []string) {
		for i := from; i < to; i++ {
			_, a := gate.send(http.MethodPost, "/v1/check", fmt.Sprintf(`{"notification_id":"n%d","user_id":"u","topic":"promotions","channel":"push"}`, i))
			all = append(all, fmt.Sprint(a["verdict"]))
		}
		return all
	}
	verdicts(0, 3)
	if err := os.Rename(log, moved); err != nil {
		t.Fatal(err)
	}
	if err := gate.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	gate.until("the log is opened again", func() bool { _, err := os.Stat(log); return err == nil })
	verdicts(3, 7)
	gate.until("all is written", func() bool {
		_, metrics := gate.get("/metrics")
		return strings.Contains(metrics, "\nsendgate_decision_log_written_total 7\n")
	})
	_, metrics := gate.get("/metrics")
	for _, name := range []string{"dropped", "failed"} {
		if !strings.Contains(metrics, "\nsendgate_decision_log_"+name+"_total 0\n") {
			t.Errorf("%s is not counted", name)
		}
	}
	shown := func() map[string]any {
		var u map[string]any
		if err := json.Unmarshal([]byte(must(t, "caps", "u", "--config", conf, "--partitions", "256", "--json")), &u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	before := shown()
	server.Restart()
	if gone := shown(); len(gone["caps"].([]any)) != 0 {
		t.Fatalf("nothing was lost: %v", gone)
	}
	for _, want := range []string{"5 sent: 5 counted, 0 known already", "5 sent: 0 counted, 5 known already"} {
		if out := must(t, "rebuild-caps", log, moved, "--config", conf, "--partitions", "256"); !strings.Contains(out, want) {
			t.Errorf("not %q:\n%s", want, out)
		}
		if after := shown(); fmt.Sprint(after["caps"]) != fmt.Sprint(before["caps"]) {
			t.Errorf("%v\nand not\n%v", after["caps"], before["caps"])
		}
	}
	gate.until("the gate judges again", func() bool {
		_, a := gate.send(http.MethodPost, "/v1/check", `{"notification_id":"m","user_id":"u","topic":"promotions","channel":"push"}`)
		return a["reason"] == "frequency_cap"
	})
	table := must(t, "caps", "u", "--config", conf, "--partitions", "256")
	for _, want := range []string{"KIND", "rolling", "category=marketing", "24h", "5 of 5", "bytes at"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing:\n%s", want, table)
		}
	}
	if err := gate.stop(); err != nil {
		t.Errorf("it ended with %v\n%s", err, gate.stderr.String())
	}
	out := must(t, "replay", log, moved, "--complete", "-v")
	if !strings.Contains(out, "category/24h") || !strings.Contains(out, "5 of 5") || strings.Contains(out, "-delivery:") {
		t.Error(out)
	}
	// The store can be asked now that nobody has it open.
	if out := must(t, "caps", "u", "--config", conf); !strings.Contains(out, "5 of 5") {
		t.Error(out)
	}
}

func TestReplayOfOverDelivery(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	text := ""
	for i := range 3 {
		text += fmt.Sprintf(`{"v":1,"kind":"decision","at":%d,"user":"u","notification_id":"n%d","channel":"push","verdict":"allow","caps":[{"kind":"rolling","window":"24h","limit":2,"used":1}]}`+"\n", i+1, i)
	}
	writeFile(t, log, text+`{"v":1,"kind":"deci`)
	out, err := command(t, "replay", log, "-v")
	if err == nil || !strings.Contains(out, `over-delivery: allowed with 2 of 2 taken: user "u", notification "n2"`) ||
		!strings.Contains(out, "there was over-delivery") || !strings.Contains(out, "1 lines are torn") {
		t.Errorf("%v\n%s", err, out)
	}
	writeFile(t, log, "nonsense\n"+text)
	if out, err := command(t, "replay", log); err == nil || !strings.Contains(out, "line 1") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, _ := command(t, "replay", log, "--skip-bad"); !strings.Contains(out, "1 lines are no entries") || !strings.Contains(out, "3 of 2") {
		t.Error(out)
	}
}
