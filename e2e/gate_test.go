package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
	"github.com/sendgate/sendgate/internal/programs"
)

// client keeps a connection for everybody here who talks to a gate at once.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// gate is one `gate serve`.
type gate struct {
	*programs.Process
	url string
}

// decision is a decision as it comes over HTTP.
type decision struct {
	NotificationID string    `json:"notification_id"`
	User           string    `json:"user_id"`
	Verdict        string    `json:"verdict"`
	Reason         string    `json:"reason"`
	Step           string    `json:"step"`
	Category       string    `json:"category"`
	Exact          bool      `json:"exact"`
	Degraded       bool      `json:"degraded"`
	DeliverAt      time.Time `json:"deliver_at"`
	RetryAt        time.Time `json:"retry_at"`
	Error          any       `json:"error"` // in the place of an item of a batch
}

// errUnavailable is a 503: the store was too slow, and the call is to be
// repeated.
var errUnavailable = errors.New("the store is not available")

// insist makes a request until the store lets it through. A scan of everything
// keeps dynalite busy for seconds on end.
func (g *gate) insist(method, path string, body any) error {
	for began := time.Now(); ; {
		if err := g.call(method, path, body, nil); !errors.Is(err, errUnavailable) || time.Since(began) > patience {
			return err
		}
	}
}

// call makes one request. Any answer but 200 is an error.
func (g *gate) call(method, path string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, g.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err = io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode == http.StatusServiceUnavailable:
		return fmt.Errorf("%s %s: %w", method, path, errUnavailable)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s: status %d: %s", method, path, response.StatusCode, data)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(data, answer)
}

// ask asks about checks, all at once; one that is to take its slots goes as a
// single check.
func (g *gate) ask(checks []oracle.Check, reserve bool) ([]decision, error) {
	if len(checks) == 1 && reserve {
		var d decision
		err := g.call("POST", "/v1/check", checks[0], &d)
		return []decision{d}, err
	}
	var answer struct {
		Decisions []decision `json:"decisions"`
	}
	err := g.call("POST", "/v1/check/batch", map[string]any{"checks": checks, "reserve": reserve}, &answer)
	if err == nil && len(answer.Decisions) != len(checks) {
		err = fmt.Errorf("%d decisions for %d checks", len(answer.Decisions), len(checks))
	}
	return answer.Decisions, err
}

// set switches one setting of a user.
func (g *gate) set(user, topic, channel string, on bool) error {
	setting := map[string]any{"topic": topic, "channel": channel, "enabled": on}
	return g.insist("PATCH", "/v1/users/"+url.PathEscape(user)+"/preferences", map[string]any{"preferences": []any{setting}})
}

// metric is one series as `/metrics` has it, labels included; -1 if it is not
// there.
func (g *gate) metric(series string) float64 {
	response, err := client.Get(g.url + "/metrics")
	if err != nil {
		return -1
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
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
