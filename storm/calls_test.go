package storm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

// answer is what a gate says to a check.
type answer struct {
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason"`
	Degraded bool   `json:"degraded"`
}

// optedOut tells whether it is the answer to somebody who has opted out.
func (a answer) optedOut() bool { return a.Verdict == "suppress" && a.Reason == "opted_out" }

// check is what a gate is asked.
type check struct {
	ID      string `json:"notification_id"`
	User    string `json:"user_id"`
	Topic   string `json:"topic"`
	Channel string `json:"channel"`
}

// set switches marketing for a user, and returns the revision that was
// acknowledged.
func (f *fleet) set(g *gate, user string, on bool) (revision int64, err error) {
	var doc struct {
		Revision int64 `json:"revision"`
	}
	body := fmt.Sprintf(`{"preferences":[{"topic":"promotions","channel":"push","enabled":%t}]}`, on)
	err = f.call(http.MethodPatch, g.url+"/v1/users/"+user+"/preferences", []byte(body), &doc)
	return doc.Revision, err
}

// ask asks one check, over HTTP.
func (f *fleet) ask(g *gate, c check) (a answer, err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return a, err
	}
	return a, f.call(http.MethodPost, g.url+"/v1/check", body, &a)
}

func (f *fleet) call(method, url string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(context.Background(), method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	// All calls here may be repeated: a connection that the gate closes because
	// nothing was asked on it for some seconds costs no failure.
	request.Header["Idempotency-Key"] = nil
	response, err := f.caller.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d %s", method, response.StatusCode, text)
	}
	return json.Unmarshal(text, into)
}

// look asks a gate, in process, whether it would send marketing to some users.
// Nothing is charged.
func (g *gate) look(users []string) ([]answer, error) {
	checks := make([]check, len(users))
	for i, user := range users {
		checks[i] = check{"look", user, "promotions", "push"}
	}
	body, err := json.Marshal(map[string]any{"checks": checks, "reserve": false})
	if err != nil {
		return nil, err
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/check/batch", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	var doc struct {
		Decisions []answer `json:"decisions"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || len(doc.Decisions) != len(users) {
		return nil, fmt.Errorf("%d %s: %w", w.Code, w.Body, err)
	}
	return doc.Decisions, nil
}
