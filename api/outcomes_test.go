package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// statuses reports outcomes and lists what each led to: a status, or the code
// and field of an error.
func statuses(st *stack, outcomes ...string) (got []string) {
	st.t.Helper()
	for _, item := range st.do("POST", "/v1/outcomes", `{"outcomes":[`+strings.Join(outcomes, ",")+`]}`).ok()["results"].([]any) {
		doc := item.(map[string]any)
		if fault, wrong := doc["error"].(map[string]any); wrong {
			got = append(got, fmt.Sprint(fault["code"], " ", fault["field"]))
			continue
		}
		got = append(got, doc["status"].(string))
	}
	return got
}

func outcomeOf(id, outcome string, more ...string) string {
	return fmt.Sprintf(`{"notification_id":%q,"user_id":"u","outcome":%q%s}`, id, outcome, strings.Join(more, ""))
}

func checkNamed(id, channel string) string {
	return fmt.Sprintf(`{"notification_id":%q,"user_id":"u","topic":"promotions","channel":%q}`, id, channel)
}

func verdictOf(st *stack, id, channel string) string {
	st.t.Helper()
	doc := st.do("POST", "/v1/check", checkNamed(id, channel)).ok()
	return fmt.Sprint(doc["verdict"], " ", doc["reason"])
}

func TestOutcomes(t *testing.T) {
	st := newStack(t)
	verdictOf(st, "n1", "push")
	got := statuses(st,
		outcomeOf("n1", "failed", `,"channel":"email"`),
		outcomeOf("n1", "failed", `,"channel":"push"`),
		outcomeOf("n1", "failed", `,"channel":"push"`),
		outcomeOf("nobody", "delivered"),
		outcomeOf("n2", "delivered", `,"topic":"promotions","channel":"push"`),
		outcomeOf("n2", "delivered", `,"channel":"push"`),
		outcomeOf("n2", "failed"),
		outcomeOf("n3", "delivered", `,"topic":"promotions","channel":"push","at":"2020-01-01T00:00:00Z"`),
	)
	want := []string{"unknown", "given_back", "unchanged", "unknown", "settled", "unchanged", "unchanged", "expired"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOutcomesThatAreWrongFailAlone(t *testing.T) {
	st := newStack(t)
	got := statuses(st,
		`{"user_id":"u","outcome":"failed"}`,
		`{"notification_id":"n","outcome":"failed"}`,
		`{"notification_id":"n","user_id":"u"}`,
		outcomeOf("n", "lost"),
		outcomeOf("n", "failed", `,"channel":"pigeon"`),
		outcomeOf("n", "failed", `,"channel":""`),
		outcomeOf("n", "failed", `,"topic":"promotions"`),
		outcomeOf("n", "failed", `,"topic":"","channel":"push"`),
		outcomeOf("n", "failed", `,"campaign_id":"c"`),
		outcomeOf("n", "failed", `,"at":"yesterday"`),
		outcomeOf("n", "failed", `,"colour":"red"`),
		outcomeOf("n\n", "failed"),
		`7`,
		outcomeOf("n", "failed"),
	)
	want := []string{
		"missing_field notification_id", "missing_field user_id", "missing_field outcome", "invalid_field outcome",
		"unknown_channel channel", "invalid_field channel", "missing_field channel", "invalid_field topic", "missing_field topic",
		"invalid_field at", "unknown_field colour", "invalid_notification_id notification_id", "malformed_json <nil>", "unknown",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	st.do("POST", "/v1/outcomes", `{"outcomes":[]}`).refused(422, "missing_field", "outcomes")
	st.do("POST", "/v1/outcomes", `{}`).refused(422, "missing_field", "outcomes")
	many := strings.Repeat(outcomeOf("n", "failed")+",", maxBatch)
	st.do("POST", "/v1/outcomes", `{"outcomes":[`+many+outcomeOf("n", "failed")+`]}`).refused(413, "batch_too_large", "outcomes")
}

func TestTakeTheFirstThatMayGo(t *testing.T) {
	st := newStack(t)
	take := func(body string) (got []string) {
		for _, item := range st.do("POST", "/v1/check/batch", body).ok()["decisions"].([]any) {
			doc := item.(map[string]any)
			got = append(got, fmt.Sprint(doc["verdict"], " ", doc["reason"], " ", doc["error"] != nil))
		}
		return got
	}
	st.do("PUT", "/v1/users/u/preferences", `{"preferences":[{"topic":"promotions","channel":"push","enabled":false}]}`).ok()
	got := take(`{"take":1,"checks":[` + strings.Join([]string{
		checkNamed("n", "push"), checkNamed("", "push"), checkNamed("n", "email"), checkNamed("n", "sms"), checkNamed("m", "sms"),
	}, ",") + `]}`)
	want := []string{"suppress opted_out false", "<nil> <nil> true", "allow default_on false", "suppress not_taken false", "suppress not_taken false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	one := checkNamed("n", "push")
	st.do("POST", "/v1/check/batch", `{"take":0,"checks":[`+one+`]}`).refused(422, "invalid_field", "take")
	st.do("POST", "/v1/check/batch", `{"take":1001,"checks":[`+one+`]}`).refused(422, "invalid_field", "take")
	st.do("POST", "/v1/check/batch", `{"take":1,"reserve":false,"checks":[`+one+`]}`).refused(422, "invalid_field", "take")
	other := strings.Replace(one, `"u"`, `"v"`, 1)
	st.do("POST", "/v1/check/batch", `{"take":1,"checks":[`+one+`,`+other+`]}`).refused(422, "invalid_field", "take")
}
