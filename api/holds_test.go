package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
)

const (
	unsubscribeURL = "/v1/preferences/unsubscribe-all"
	resubscribeURL = "/v1/preferences/resubscribe"
)

func TestUnsubscribeAllIsAnsweredToTheLetter(t *testing.T) {
	st := newStack(t)
	a := st.do("POST", unsubscribeURL, `{"user_id":"u_42","reason":"user_requested"}`)
	want := `{"user_id":"u_42","global_unsubscribe":true,"essential_only":true,"effective_at":"2026-12-01T09:30:00.000Z","topics_disabled":4,"channels_disabled":16}` + "\n"
	if diff := cmp.Diff(want, string(a.body)); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		body          string
		essentialOnly bool
	}{
		{`{"user_id":"a","reason":"account_deletion"}`, false},
		{`{"user_id":"b","reason":"account_deletion","retain_essential":true}`, true},
		{`{"user_id":"c","reason":"operator_block"}`, true},
		{`{"user_id":"c","reason":"gdpr_request","retain_essential":false}`, false},
		{`{"user_id":"d","reason":"gdpr_request","source":"operator"}`, true},
	} {
		if doc := st.do("POST", unsubscribeURL, c.body).ok(); doc["essential_only"] != c.essentialOnly {
			t.Errorf("%s: %v", c.body, doc)
		}
	}
	if d := st.do("POST", "/v1/check", checkOf("a", "security_alerts", "push")).ok(); d["verdict"] != "suppress" {
		t.Errorf("past a hard hold: %v", d)
	}
	if d := st.do("POST", "/v1/check", checkOf("b", "security_alerts", "push")).ok(); d["verdict"] != "allow" {
		t.Errorf("past an ordinary hold: %v", d)
	}
}

// Case 3.
func TestLiftingOneHoldLeavesTheOther(t *testing.T) {
	st := newStack(t)
	st.do("PUT", prefsURL, optOut).ok()
	st.do("POST", unsubscribeURL, `{"user_id":"u_42","reason":"gdpr_request"}`).ok()
	st.do("POST", unsubscribeURL, `{"user_id":"u_42","reason":"operator_block"}`).ok()
	doc := st.do("POST", resubscribeURL, `{"user_id":"u_42","reason":"cleared","source":"operator"}`).ok()
	if doc["global_unsubscribe"] != true || doc["user_id"] != user || doc["effective_at"] == "" || len(doc) != 3 {
		t.Errorf("%v", doc)
	}
	st.do("PUT", prefsURL, setting("promotions", "push", "true")).ok()
	doc = st.do("GET", prefsURL, "").ok()
	holds := doc["holds"].([]any)
	if len(holds) != 1 || holds[0].(map[string]any)["reason"] != "gdpr_request" || doc["global_unsubscribe"] != true {
		t.Errorf("%v", doc)
	}
	if doc = st.do("POST", resubscribeURL, `{"user_id":"u_42","reason":"asked to come back"}`).ok(); doc["global_unsubscribe"] != false {
		t.Errorf("%v", doc)
	}
	if d := st.do("POST", "/v1/check", checkOf(user, "promotions", "push")).ok(); d["reason"] != "opted_in" {
		t.Errorf("%v", d)
	}
}

func TestAHoldIsRefused(t *testing.T) {
	st := newStack(t)
	both := []refusal{
		{"unknown member", `{"user_id":"u_42","reason":"user_requested","why":"x"}`, 400, sendgate.CodeUnknownField, "why"},
		{"another case", `{"User_id":"u_42","reason":"user_requested"}`, 400, sendgate.CodeUnknownField, "User_id"},
		{"member twice", `{"user_id":"u_42","user_id":"u_43","reason":"user_requested"}`, 400, sendgate.CodeDuplicateField, "user_id"},
		{"user a number", `{"user_id":42,"reason":"user_requested"}`, 400, sendgate.CodeMalformedJSON, "user_id"},
		{"user missing", `{"reason":"user_requested"}`, 422, sendgate.CodeMissingField, "user_id"},
		{"user null", `{"user_id":null,"reason":"user_requested"}`, 422, sendgate.CodeMissingField, "user_id"},
		{"user empty", `{"user_id":"","reason":"user_requested"}`, 400, sendgate.CodeInvalidUserID, "user_id"},
		{"reason missing", `{"user_id":"u_42"}`, 422, sendgate.CodeMissingField, "reason"},
		{"reason empty", `{"user_id":"u_42","reason":""}`, 422, sendgate.CodeInvalidReason, "reason"},
		{"source unknown", `{"user_id":"u_42","reason":"user_requested","source":"admin"}`, 422, sendgate.CodeInvalidSource, "source"},
		{"source empty", `{"user_id":"u_42","reason":"user_requested","source":""}`, 422, sendgate.CodeInvalidSource, "source"},
		{"source null", `{"user_id":"u_42","reason":"user_requested","source":null}`, 400, sendgate.CodeMalformedJSON, "source"},
	}
	unsubscribe := []refusal{
		{"reason unknown", `{"user_id":"u_42","reason":"because"}`, 422, sendgate.CodeInvalidReason, "reason"},
		{"an operator's block by the user", `{"user_id":"u_42","reason":"operator_block","source":"user"}`, 422, sendgate.CodeInvalidSource, "source"},
		{"retain_essential null", `{"user_id":"u_42","reason":"user_requested","retain_essential":null}`, 400, sendgate.CodeMalformedJSON, "retain_essential"},
		{"retain_essential a string", `{"user_id":"u_42","reason":"user_requested","retain_essential":"no"}`, 400, sendgate.CodeMalformedJSON, "retain_essential"},
	}
	resubscribe := []refusal{
		{"reason too long", `{"user_id":"u_42","reason":"` + strings.Repeat("x", 257) + `"}`, 422, sendgate.CodeInvalidReason, "reason"},
		{"retain_essential", `{"user_id":"u_42","reason":"x","retain_essential":true}`, 400, sendgate.CodeUnknownField, "retain_essential"},
	}
	for target, cases := range map[string][]refusal{
		unsubscribeURL: slices.Concat(both, bodyRefusals, unsubscribe),
		resubscribeURL: slices.Concat(both, bodyRefusals, resubscribe),
	} {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				st.t = t
				st.do("POST", target, c.body).refused(c.status, c.code, c.field)
			})
		}
	}
	st.t = t
	if r := st.revision(user); r != 0 {
		t.Errorf("revision %v after refusals", r)
	}
}

func TestChangesAreListed(t *testing.T) {
	st := newStack(t)
	st.do("PUT", prefsURL, optOut, "Sendgate-Actor", "settings page", "X-Forwarded-For", "10.9.8.7", "X-Real-IP", "10.9.8.7").ok()
	st.do("POST", unsubscribeURL, `{"user_id":"u_42","reason":"gdpr_request"}`, "Sendgate-Reason", "case 4711").ok()
	st.do("POST", resubscribeURL, `{"user_id":"u_42","reason":"asked to"}`).ok()
	st.do("PUT", prefsURL, `{"quiet_hours":{"timezone":"UTC"}}`).ok()
	a := st.do("GET", "/v1/users/u_42/changes", "")
	at := `"at":"2026-12-01T09:30:00.000Z"`
	want := `{"changes":[` +
		`{"revision":1,` + at + `,"actor":"settings page","from":"192.0.2.1","what":[{"kind":"preference","topic":"promotions","channel":"push","after":false}]},` +
		`{"revision":2,` + at + `,"reason":"case 4711","from":"192.0.2.1","what":[{"kind":"hold","source":"user","after":{"reason":"gdpr_request","retain_essential":true}}]},` +
		`{"revision":3,` + at + `,"reason":"asked to","from":"192.0.2.1","what":[{"kind":"hold","source":"user","before":{"reason":"gdpr_request","retain_essential":true}}]},` +
		`{"revision":4,` + at + `,"from":"192.0.2.1","what":[{"kind":"quiet_hours","after":{"enabled":false,"timezone":"UTC"}}]}]}` + "\n"
	if diff := cmp.Diff(want, string(a.body)); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		query string
		want  []float64
	}{
		{"?after=0&limit=1000", []float64{1, 2, 3, 4}}, {"?after=2", []float64{3, 4}}, {"?limit=1&after=1", []float64{2}}, {"?after=9223372036854775807", nil},
		{"?limit=2", []float64{1, 2}}, {"?unknown=1&After=3", []float64{1, 2, 3, 4}}, {"?", []float64{1, 2, 3, 4}},
	} {
		var got []float64
		for _, ch := range st.do("GET", "/v1/users/u_42/changes"+c.query, "").ok()["changes"].([]any) {
			got = append(got, ch.(map[string]any)["revision"].(float64))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.query, got, c.want)
		}
	}
	if a := st.do("GET", "/v1/users/nobody/changes", ""); string(a.body) != `{"changes":[]}`+"\n" {
		t.Errorf("%s", a.body)
	}
	for query, field := range map[string]string{
		"after=-1": "after", "after=": "after", "after=x": "after", "after=1.0": "after", "after=9223372036854775808": "after", "after=1&after=2": "after",
		"limit=0": "limit", "limit=1001": "limit", "limit=ten": "limit", "limit=": "limit", "after=%zz": "", "after=1;limit=2": "",
	} {
		st.do("GET", "/v1/users/u_42/changes?"+query, "").refused(422, sendgate.CodeInvalidField, field)
	}
}

func TestWhoAsksAndWhyIsRefused(t *testing.T) {
	st := newStack(t)
	for _, name := range []string{"Sendgate-Actor", "Sendgate-Reason"} {
		for _, call := range []struct{ method, target, body string }{
			{"PUT", prefsURL, optOut}, {"PATCH", prefsURL, optOut},
			{"POST", unsubscribeURL, `{"user_id":"u_42","reason":"user_requested"}`}, {"POST", resubscribeURL, `{"user_id":"u_42","reason":"x"}`},
		} {
			st.do(call.method, call.target, call.body, name, "a", name, "b").refused(400, sendgate.CodeInvalidField, name)
			st.do(call.method, call.target, call.body, name, strings.Repeat("x", 257)).refused(422, sendgate.CodeInvalidField, name)
			st.do(call.method, call.target, call.body, name, "\xff").refused(422, sendgate.CodeInvalidField, name)
		}
	}
	if r := st.revision(user); r != 0 {
		t.Errorf("revision %v after refusals", r)
	}
	st.do("PUT", prefsURL, optOut, "Sendgate-Actor", fmt.Sprintf("%0256d", 0)).ok()
}
