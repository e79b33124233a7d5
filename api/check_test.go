package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
)

func TestADecisionIsWrittenToTheLetter(t *testing.T) {
	st := newStackOn(t, redistest.Start(t).Client())
	promo := func(n int) string {
		return fmt.Sprintf(`{"notification_id":"n_%d","user_id":"u_42","topic":"promotions","channel":"push"}`, n)
	}
	first := st.do("POST", "/v1/check", promo(1))
	caps := first.ok()["caps"].([]any)[0].(map[string]any)
	resets, err := time.Parse(instantLayout, caps["resets_at"].(string))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"notification_id":"n_1","user_id":"u_42","verdict":"allow","reason":"default_on","step":"caps",` +
		`"category":"marketing","exact":true,"degraded":false,` +
		`"caps":[{"by":["category"],"window":"24h","limit":2,"used":1,"resets_at":"` + caps["resets_at"].(string) + `"}]}` + "\n"
	if diff := cmp.Diff(want, string(first.body)); diff != "" {
		t.Error(diff)
	}
	st.do("POST", "/v1/check", promo(2)).ok()
	full := st.do("POST", "/v1/check", promo(3)).ok()
	if full["verdict"] != "suppress" || full["reason"] != "frequency_cap" {
		t.Errorf("%v", full)
	}
	if at, err := time.Parse(instantLayout, full["retry_at"].(string)); err != nil || at.Before(resets) {
		t.Errorf("retry_at %v, resets_at %v: %v", full["retry_at"], resets, err)
	}
	again := st.do("POST", "/v1/check", promo(1)).ok()
	if again["verdict"] != "allow" {
		t.Errorf("asked again: %v", again)
	}
	plain := st.do("POST", "/v1/check", checkOf("u_42", "order_updates", "sms"))
	want = `{"notification_id":"n_1","user_id":"u_42","verdict":"allow","reason":"default_on","step":"preference",` +
		`"category":"transactional","exact":true,"degraded":false}` + "\n"
	if diff := cmp.Diff(want, string(plain.body)); diff != "" {
		t.Error(diff)
	}
}

func TestInstantsAreRoundedUpWhereOneAsksAgain(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 30, 0, 1, time.FixedZone("", 3600))
	notBefore := func(at time.Time) instant { return instant(appendNotBefore(nil, "", at)) }
	for _, c := range []struct{ got, want instant }{
		{notBefore(at), `"2026-12-01T08:30:00.001Z"`},
		{notBefore(at.Add(-time.Nanosecond)), `"2026-12-01T08:30:00.000Z"`},
		{instantOf(at), "2026-12-01T08:30:00.000Z"},
		{notBefore(time.Time{}), ""},
		{instantOf(time.Time{}), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestACheckIsRefused(t *testing.T) {
	st := newStack(t)
	cases := append([]refusal{}, checkRefusals...)
	for _, c := range append(cases, bodyRefusals...) {
		t.Run(c.name, func(t *testing.T) {
			st.t = t
			st.do("POST", "/v1/check", c.body).refused(c.status, c.code, c.field)
			st.do("POST", "/v1/explain", c.body).refused(c.status, c.code, c.field)
		})
	}
	st.t = t
	several := st.do("POST", "/v1/check", `{"notification_id":"n","user_id":"u","topic":"promo","channel":"fax"}`).
		refused(422, sendgate.CodeUnknownTopic, "topic")
	if errs, _ := several["errors"].([]any); len(errs) != 2 {
		t.Errorf("errors: %v", several["errors"])
	}
}

func TestABatchItemFailsAlone(t *testing.T) {
	st := newStack(t)
	const before, after = `{"notification_id":"n_a","user_id":"u","topic":"promotions","channel":"push"}`,
		`{"notification_id":"n_b","user_id":"u","topic":"promotions","channel":"push"}`
	for _, c := range checkRefusals {
		t.Run(c.name, func(t *testing.T) {
			st.t = t
			doc := st.do("POST", "/v1/check/batch", `{"checks":[`+before+`,`+c.body+`,`+after+`]}`).ok()
			got := doc["decisions"].([]any)
			if len(got) != 3 {
				t.Fatalf("%d decisions", len(got))
			}
			if got[0].(map[string]any)["notification_id"] != "n_a" || got[2].(map[string]any)["notification_id"] != "n_b" {
				t.Errorf("the others were harmed: %v", got)
			}
			fault, _ := got[1].(map[string]any)["error"].(map[string]any)
			field, _ := fault["field"].(string)
			if fault["code"] != string(c.code) || field != c.field || fault["detail"] == "" || len(got[1].(map[string]any)) != 1 {
				t.Errorf("%v, want %s %q", got[1], c.code, c.field)
			}
		})
	}
}

func TestABatchIsRefusedAsAWhole(t *testing.T) {
	st := newStack(t)
	one := checkOf("u", "promotions", "push")
	many := strings.Repeat(one+",", maxBatch) + one
	cases := []refusal{
		{"no checks", `{"reserve":true}`, 422, sendgate.CodeMissingField, "checks"},
		{"null checks", `{"checks":null}`, 422, sendgate.CodeMissingField, "checks"},
		{"empty checks", `{"checks":[]}`, 422, sendgate.CodeMissingField, "checks"},
		{"checks an object", `{"checks":{}}`, 400, sendgate.CodeMalformedJSON, "checks"},
		{"checks twice", `{"checks":[` + one + `],"checks":[` + one + `]}`, 400, sendgate.CodeDuplicateField, "checks"},
		{"reserve twice", `{"reserve":true,"checks":[` + one + `],"reserve":false}`, 400, sendgate.CodeDuplicateField, "reserve"},
		{"reserve null", `{"checks":[` + one + `],"reserve":null}`, 400, sendgate.CodeMalformedJSON, "reserve"},
		{"reserve a string", `{"checks":[` + one + `],"reserve":"true"}`, 400, sendgate.CodeMalformedJSON, "reserve"},
		{"unknown member", `{"checks":[` + one + `],"dry_run":true}`, 400, sendgate.CodeUnknownField, "dry_run"},
		{"too many", `{"checks":[` + many + `]}`, 413, sendgate.CodeBatchTooLarge, "checks"},
		{"syntax in an item", `{"checks":[` + one + `,{"user_id":tru}]}`, 400, sendgate.CodeMalformedJSON, "checks[1].user_id"},
		{"UTF-8 in an item", "{\"checks\":[" + one + ",{\"user_id\":\"\xff\"}]}", 400, sendgate.CodeMalformedJSON, "checks[1].user_id"},
		{"trailing text", `{"checks":[` + one + `]}]`, 400, sendgate.CodeMalformedJSON, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			st.t = t
			st.do("POST", "/v1/check/batch", c.body).refused(c.status, c.code, c.field)
		})
	}
	st.t = t
	if d := st.do("POST", "/v1/check/batch", `{"checks":[`+strings.TrimSuffix(many, ","+one)+`]}`).ok()["decisions"].([]any); len(d) != maxBatch {
		t.Errorf("%d decisions", len(d))
	}
	if d := st.do("POST", "/v1/check", one).ok(); d["caps"].([]any)[0].(map[string]any)["used"] != 1.0 {
		t.Errorf("a batch that was refused took slots: %v", d)
	}
}

func TestReserveFalseOnlyLooks(t *testing.T) {
	st := newStack(t)
	batch := func(reserve string) []any {
		return st.do("POST", "/v1/check/batch", `{"checks":[`+checkOf("u", "promotions", "push")+`]`+reserve+`}`).ok()["decisions"].([]any)
	}
	used := func(ds []any) any { return ds[0].(map[string]any)["caps"].([]any)[0].(map[string]any)["used"] }
	if got := used(batch(`,"reserve":false`)); got != 0.0 {
		t.Errorf("used %v after a look", got)
	}
	if got := used(batch("")); got != 1.0 {
		t.Errorf("used %v by default", got)
	}
}

func TestExplainSaysWhatEveryStepFound(t *testing.T) {
	st := newStack(t)
	st.do("PUT", prefsURL, `{"quiet_hours":{"start":"22:00","end":"08:00","timezone":"America/New_York"}}`).ok()
	ask := func(at string) map[string]any {
		return st.do("POST", "/v1/explain", checkWith("at", at)).ok()
	}
	doc := ask(`"2026-12-01T03:00:00Z"`)
	if doc["verdict"] != "defer" || doc["deliver_at"] != "2026-12-01T13:00:00.000Z" {
		t.Errorf("%v", doc)
	}
	var steps []string
	for _, f := range doc["trace"].([]any) {
		steps = append(steps, f.(map[string]any)["step"].(string))
	}
	if diff := cmp.Diff([]string{"global", "filter", "preference", "quiet_hours", "caps"}, steps); diff != "" {
		t.Error(diff)
	}
	if doc := ask(`"2026-12-01T15:00:00+01:00"`); doc["verdict"] != "allow" {
		t.Errorf("%v", doc)
	}
	for _, at := range []string{`""`, `"now"`, `"2026-12-01"`, `"2026-12-01T09:30:00"`, `"0001-01-01T00:00:00Z"`, `"2026-12-01 09:30:00Z"`} {
		st.do("POST", "/v1/explain", checkWith("at", at)).refused(422, sendgate.CodeInvalidField, "at")
	}
	st.do("POST", "/v1/explain", checkWith("at", `null`)).refused(400, sendgate.CodeMalformedJSON, "at")
	st.do("POST", "/v1/explain", checkWith("at", `5`)).refused(400, sendgate.CodeMalformedJSON, "at")
	st.do("POST", "/v1/check", checkWith("at", `"2026-12-01T03:00:00Z"`)).refused(400, sendgate.CodeUnknownField, "at")
	if d := st.do("POST", "/v1/check", checkWith("topic", `"promotions"`)).ok(); d["caps"] != nil && d["caps"].([]any)[0].(map[string]any)["used"] != 1.0 {
		t.Errorf("explaining took slots: %v", d)
	}
}

func TestADeferralIsDatedForAskingAgain(t *testing.T) {
	st := newStack(t)
	st.do("PUT", prefsURL, `{"quiet_hours":{"start":"09:00","end":"10:00","timezone":"UTC"}}`).ok()
	doc := st.do("POST", "/v1/check", checkWith("topic", `"promotions"`)).ok()
	if doc["verdict"] != "defer" || doc["deliver_at"] != "2026-12-01T10:00:00.000Z" || doc["step"] != "quiet_hours" {
		t.Fatalf("%v", doc)
	}
	if _, ok := doc["retry_at"]; ok {
		t.Error("a deferral has a retry_at")
	}
	at, err := time.Parse(time.RFC3339, doc["deliver_at"].(string))
	if err != nil {
		t.Fatal(err)
	}
	st.setClock(at)
	if doc := st.do("POST", "/v1/check", checkWith("topic", `"promotions"`)).ok(); doc["verdict"] != "allow" {
		t.Errorf("asked again then: %v", doc)
	}
}

func TestAttributesAndPriorityAreTaken(t *testing.T) {
	body := checkWith("attributes", `{"region":"eu","a.b":"c"}`)
	body = strings.TrimSuffix(body, "}") + `,"priority":"high","campaign_id":"c7","sender_id":"s","creative_id":"cr","household_id":"h","device_id":"d"}`
	got, err := parseCheck([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := sendgate.Check{
		NotificationID: "n_1", User: "u_42", Topic: "promotions", Channel: "push", CampaignID: "c7", SenderID: "s",
		CreativeID: "cr", HouseholdID: "h", DeviceID: "d", Attributes: map[string]string{"region": "eu", "a.b": "c"},
		Priority: sendgate.PriorityHigh,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	st := newStack(t)
	long := func(n int) string { return checkWith("topic", `"`+strings.Repeat("x", n)+`"`) }
	st.do("POST", "/v1/check", long(maxBodyBytes)).refused(413, sendgate.CodeBodyTooLarge, "")
	st.do("PUT", prefsURL, long(maxBodyBytes)).refused(413, sendgate.CodeBodyTooLarge, "")
	st.do("POST", "/v1/check/batch", `{"checks":[`+long(maxBodyBytes)+`]}`).ok()
	st.do("POST", "/v1/check/batch", `{"checks":[`+long(maxBatchBytes)+`]}`).refused(413, sendgate.CodeBodyTooLarge, "")
	exact := checkOf("u", "promotions", "push")
	st.do("POST", "/v1/check", exact+strings.Repeat(" ", maxBodyBytes-len(exact))).ok()
	st.do("POST", "/v1/check", exact+strings.Repeat(" ", maxBodyBytes-len(exact)+1)).refused(413, sendgate.CodeBodyTooLarge, "")
}

func TestOnlyJSONIsRead(t *testing.T) {
	st := newStack(t)
	body := checkOf("u", "order_updates", "push")
	for _, ct := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
		st.do("POST", "/v1/check", body, "Content-Type", ct).ok()
	}
	for _, ct := range []string{"", "text/plain", "text/json", "application/json+x", "application/x-www-form-urlencoded", "application/json; charset", "application/merge-patch+json"} {
		a := st.do("POST", "/v1/check", body, "Content-Type", ct)
		a.refused(http.StatusUnsupportedMediaType, sendgate.CodeUnsupportedMediaType, "")
		if a.header.Get("Accept") != jsonType {
			t.Errorf("%q: no header Accept", ct)
		}
	}
	st.do("POST", "/v1/check", body, "Content-Encoding", "gzip").refused(415, sendgate.CodeUnsupportedMediaType, "")
	st.do("POST", "/v1/check", "", "Content-Type", jsonType).refused(400, sendgate.CodeMalformedJSON, "")
}

func TestMembersComeInOrder(t *testing.T) {
	st := newStack(t)
	a := st.do("GET", prefsURL, "")
	want := `{"user_id":"u_42","revision":0,"preferences":[],"frequency_caps":[],"global_unsubscribe":false,"holds":[]}` + "\n"
	if diff := cmp.Diff(want, string(a.body)); diff != "" {
		t.Error(diff)
	}
	var p problem
	if err := json.Unmarshal(st.do("GET", "/nowhere", "").body, &p); err != nil || p.Status != 404 {
		t.Errorf("%+v %v", p, err)
	}
}

// An item with half a surrogate pair, which is JSON but names nobody, fails
// alone; bytes that are not UTF-8 make no JSON at all.
func TestABatchItemWithALoneSurrogateFailsAlone(t *testing.T) {
	st := newStack(t)
	good := `{"notification_id":"n","user_id":"u","topic":"promotions","channel":"push"}`
	bad := strings.Replace(good, `"u"`, `"\ud800"`, 1)
	a := st.do(http.MethodPost, "/v1/check/batch", `{"checks":[`+good+`,`+bad+`,`+good+`]}`)
	text := string(a.body)
	if a.status != http.StatusOK || strings.Count(text, `"verdict":"allow"`) != 2 || !strings.Contains(text, `{"error":{"code":"malformed_json","field":"user_id"`) {
		t.Errorf("%d %s", a.status, text)
	}
	st.do(http.MethodPost, "/v1/check/batch", `{"checks":[`+good+`,`+strings.Replace(good, "n", "\xff", 1)+`]}`).refused(400, sendgate.CodeMalformedJSON, "checks[1]")
}
