package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/redistest"
)

// A wrong argument is refused by its name, with what would do.
func TestCountingRefuses(t *testing.T) {
	dir := t.TempDir()
	server := redistest.Start(t)
	conf := configure(t, dir, server.Addr(), "bbolt: {path: sendgate.db}")
	away := configure(t, t.TempDir(), "127.0.0.1:1", "bbolt: {path: sendgate.db}")
	log, unpacked := filepath.Join(dir, "log"), filepath.Join(dir, "log.gz")
	writeFile(t, log, "nonsense\n{}\n")
	writeFile(t, unpacked, "nonsense\n")
	serveOn(t, dir, server.Addr()) // has the store open
	for _, c := range []struct {
		want string
		args []string
	}{
		{"missing flags: --config=FILE (see gate caps --help)", []string{"caps", "u"}},
		{"no such file", []string{"caps", "u", "--config", filepath.Join(dir, "nope.yaml")}},
		{`unknown flag --confg, did you mean "--config"?`, []string{"caps", "u", "--confg", conf}},
		{"(--partitions does without the store: 256, if", []string{"caps", "u", "--config", conf}},
		{"store.bbolt.path: no gate has made this file yet", []string{"caps", "u", "--config", away}},
		{"redis.addrs 127.0.0.1:1: ", []string{"caps", "u", "--config", away, "--partitions", "256"}},
		{`--subject: "shoe_size" is no id of a check`, []string{"caps", "u", "--config", conf, "--subject", "shoe_size"}},
		{`--subject: "category" is no id of a check`, []string{"caps", "u", "--config", conf, "--subject", "category"}},
		{"--partitions: partitions 0: must be from 1 to 4096", []string{"caps", "u", "--config", conf, "--partitions", "0"}},
		{`--partitions: expected a valid 64 bit int but got "many"`, []string{"caps", "u", "--config", conf, "--partitions", "many"}},
		{"<user>: a user id must not be empty", []string{"caps", "", "--config", conf}},
		{"(see gate replay --help)", []string{"replay"}},
		{log + ", line 1: no entry of a decision log: ", []string{"replay", log}},
		{"(--skip-bad reads over such lines)", []string{"rebuild-caps", log, "--config", conf, "--partitions", "256"}},
		{unpacked + ": is not packed by gzip", []string{"replay", unpacked}},
		{"no such file", []string{"replay", filepath.Join(dir, "nope")}},
		{"redis.addrs 127.0.0.1:1: ", []string{"rebuild-caps", log, "--skip-bad", "--config", away, "--partitions", "256", "--patience", "1ms"}},
		{"--patience: ", []string{"rebuild-caps", log, "--config", conf, "--patience", "soon"}},
	} {
		if out, err := command(t, c.args...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%v: %v\n%s\nhas no\n%s", c.args, err, out, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(away), "sendgate.db")); err == nil {
		t.Error("a store was made by asking it")
	}
}

// Where nothing is found, it is said what was looked for, and where.
func TestNothingIsFound(t *testing.T) {
	dir := t.TempDir()
	server := redistest.Start(t)
	conf := configure(t, dir, server.Addr(), "bbolt: {path: sendgate.db}")
	log := filepath.Join(dir, "log")
	writeFile(t, log, "")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"caps", "u", "--config", conf, "--partitions", "1"}, []string{"0 bytes at", `no key "sendgate:{0}:cap:u" at redis.addrs ` + server.Addr(), "of 1 partitions"}},
		{[]string{"caps", "h", "--config", conf, "--partitions", "1", "--subject", "household_id"}, []string{`no key "sendgate:{0}:cap\x1fhousehold_id\x1fh"`}},
		{[]string{"caps", "u", "--config", conf, "--partitions", "1", "--json"}, []string{`"caps":[]`, `"key":"sendgate:{0}:cap:u"`, `"partitions":1`}},
		{[]string{"replay", log}, []string{"0 entries", "nothing was found"}},
		{[]string{"rebuild-caps", log, "--config", conf, "--partitions", "1"}, []string{"0 deliveries still count", "nothing is to be counted"}},
	} {
		out := must(t, c.args...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v:\n%s\nhas no\n%s", c.args, out, want)
			}
		}
	}
}

// A limit that was lowered leaves a user with more than it allows: what is shown is
// when there will be room under it, though nothing has been charged since.
func TestCapsUnderALoweredLimit(t *testing.T) {
	dir := t.TempDir()
	server := redistest.Start(t)
	conf := configure(t, dir, server.Addr(), "bbolt: {path: sendgate.db}")
	gate := start(t, "serve", "--config", conf)
	for i := range 5 {
		gate.send(http.MethodPost, "/v1/check", fmt.Sprintf(`{"notification_id":"n%d","user_id":"u","topic":"promotions","channel":"push"}`, i))
	}
	var shown usage
	args := []string{"caps", "u", "--config", conf, "--partitions", "256"}
	show := func(limit string) string {
		t.Helper()
		catalog := strings.Replace(string(catalogfile.SampleYAML()), "by: [category], window: 24h, limit: 5", "by: [category], window: 24h, limit: "+limit, 1)
		writeFile(t, filepath.Join(dir, "catalog.yaml"), catalog)
		shown = usage{}
		if err := json.Unmarshal([]byte(must(t, append(args, "--json")...)), &shown); err != nil || len(shown.Caps) != 1 {
			t.Fatalf("%+v, %v", shown, err)
		}
		return must(t, args...)
	}
	const was = "category=marketing, 24h: was last charged under a limit of 5, and the catalog has "
	if out := show("5"); strings.Contains(out, "catalog") || shown.Caps[0].Catalog != nil {
		t.Errorf("a limit as it was: %+v\n%s", shown, out)
	}
	if out := show("9"); !strings.Contains(out, was+"9: there is room\n") {
		t.Error(out)
	}
	if out := show("0"); !strings.Contains(out, was+"0: never\n") || shown.Caps[0].Catalog[0].ResetsAt != "" {
		t.Error(out)
	}
	out := show("2")
	// Four of the five have to leave: the last of them is not the newest.
	resets, newest := parseInstant(t, shown.Caps[0].Catalog[0].ResetsAt), parseInstant(t, shown.Caps[0].Newest)
	if oldest := parseInstant(t, shown.Caps[0].Oldest); !resets.After(oldest.Add(24*time.Hour)) || resets.After(newest.Add(24*time.Hour)) {
		t.Errorf("room at %v, of slots from %v to %v", resets, oldest, newest)
	}
	if !strings.Contains(out, was+"2: room again at "+shown.Caps[0].Catalog[0].ResetsAt) {
		t.Error(out)
	}
	writeFile(t, filepath.Join(dir, "catalog.yaml"), "nonsense")
	if out := must(t, args...); !strings.Contains(out, "limits are not compared with the catalog's") || !strings.Contains(out, "5 of 5") {
		t.Error(out)
	}
}

func parseInstant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
