package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/programs"
)

// client waits for longer than a gate needs to give up: what was tried is over
// when there is an answer.
var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// gate is one `gate serve`, through all its lives, behind two proxies; where
// there is more than one Redis, they tell their addresses, and redis is nil.
type gate struct {
	rig          *rig
	index        int
	redis, store *proxy

	mu      sync.Mutex
	process *programs.Process
	url     string
	life    int
}

// start starts the gate, and returns once it is ready.
func (g *gate) start() {
	t := g.rig.t
	t.Helper()
	p := programs.Start(t, programs.Options{Greets: true, Environment: append(through(g.redis.addr(), g.store.addr()), g.rig.environment(g.index)...)},
		filepath.Join(g.rig.folder, "gate"), "serve", "--config", g.rig.config)
	_, address, ok := strings.Cut(p.First, "http://")
	if !ok {
		t.Fatalf("the gate says %q", p.First)
	}
	url := "http://" + strings.TrimSpace(address)
	until(t, "the gate is ready", func() bool {
		status, _, err := call(url, http.MethodGet, "/readyz", nil)
		return err == nil && status == http.StatusOK
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.process, g.url = p, url
	g.life++
}

// at is where the gate is now, and which life of it that is.
func (g *gate) at() (url string, is place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.url, place{g.index, g.life}
}

func (g *gate) running() *programs.Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.process
}

func (g *gate) kill() { g.running().Kill() }

// metric is one series as `/metrics` has it; -1 if it is not there.
func (g *gate) metric(series string) float64 {
	url, _ := g.at()
	_, data, err := call(url, http.MethodGet, "/metrics", nil)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// call makes one request.
func call(url, method, path string, body any) (status int, answer []byte, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(context.Background(), method, url+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// decision is a decision as it comes over HTTP.
type decision struct {
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason"`
	Step     string `json:"step"`
	Exact    bool   `json:"exact"`
	Degraded bool   `json:"degraded"`
	Error    any    `json:"error"`
}

func (d decision) sends() bool { return d.Verdict == "allow" }

type question struct {
	Notification string `json:"notification_id"`
	User         string `json:"user_id"`
	Topic        string `json:"topic"`
	Channel      string `json:"channel"`
}

// ask looks at all that people are asked about, in the order of topics, one
// person after the other. Without an answer it returns nothing.
func ask(url string, people []*person) []decision {
	checks := make([]question, 0, len(people)*len(topics))
	for _, p := range people {
		for _, about := range topics {
			checks = append(checks, question{"look", p.id, about.name, about.channel})
		}
	}
	status, data, err := call(url, http.MethodPost, "/v1/check/batch", map[string]any{"checks": checks, "reserve": false})
	var answer struct {
		Decisions []decision `json:"decisions"`
	}
	if err != nil || status != http.StatusOK || json.Unmarshal(data, &answer) != nil || len(answer.Decisions) != len(checks) {
		return nil
	}
	return answer.Decisions
}

// patience is for a machine that is busy with other tests. Nothing waits it
// out that is going to succeed.
const patience = 2 * time.Minute

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !within(patience, holds) {
		t.Fatalf("not within %s: %s", patience, what)
	}
}

// within waits until something holds, and tells whether it did within a limit.
func within(limit time.Duration, holds func() bool) bool {
	end := time.NewTimer(limit)
	defer end.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-end.C:
			return false
		}
	}
	return true
}
