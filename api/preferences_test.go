package api

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
)

const optOut = `{"preferences":[{"topic":"promotions","channel":"push","enabled":false}]}`

// changes lists what was logged for a user.
func (st *stack) changes(user string) []any {
	st.t.Helper()
	return st.do("GET", "/v1/users/"+user+"/changes", "").ok()["changes"].([]any)
}

func TestADocumentIsWrittenToTheLetter(t *testing.T) {
	st := newStack(t)
	st.do("PUT", prefsURL, `{
		"preferences": [{"topic":"promotions","channel":"sms","enabled":true},{"topic":"promotions","channel":"push","enabled":false},{"topic":"newsletter","channel":"sms","enabled":true}],
		"quiet_hours": {"start":"22:00","end":"24:00","days":["tue","mon"],"timezone":"America/New_York"},
		"frequency_caps": [{"category":"marketing","max_count":5,"window":"7d"},{"category":"marketing","max_count":0,"window":"24h"}]
	}`).ok()
	st.do("POST", "/v1/preferences/unsubscribe-all", `{"user_id":"u_42","reason":"gdpr_request"}`).ok()
	a := st.do("GET", prefsURL, "")
	want := `{"user_id":"u_42","revision":2,` +
		`"preferences":[{"topic":"newsletter","channel":"sms","enabled":true},{"topic":"promotions","channel":"push","enabled":false},{"topic":"promotions","channel":"sms","enabled":true}],` +
		`"quiet_hours":{"enabled":true,"start":"22:00","end":"24:00","days":["mon","tue"],"timezone":"America/New_York"},` +
		`"frequency_caps":[{"category":"marketing","max_count":0,"window":"24h"},{"category":"marketing","max_count":5,"window":"7d"}],` +
		`"global_unsubscribe":true,"holds":[{"source":"user","reason":"gdpr_request","retain_essential":true,"at":"2026-12-01T09:30:00.000Z"}],` +
		`"updated_at":"2026-12-01T09:30:00.000Z"}` + "\n"
	if diff := cmp.Diff(want, string(a.body)); diff != "" {
		t.Error(diff)
	}
	if a.header.Get("ETag") != `"2"` {
		t.Errorf("ETag %s", a.header.Get("ETag"))
	}
	for _, method := range []string{"PUT", "PATCH"} {
		b := st.do(method, prefsURL, string(a.body))
		if b.ok(); string(b.body) != string(a.body) || b.header.Get("ETag") != `"2"` {
			t.Errorf("%s of what was read: %s", method, b.body)
		}
	}
	if n := len(st.changes(user)); n != 2 {
		t.Errorf("%d changes, want 2", n)
	}
}

// Case 1.
func TestWhatWasReadCanBeWrittenBack(t *testing.T) {
	st := newStackOn(t, redistest.Start(t).Client())
	st.do("PUT", prefsURL, `{"preferences":[{"topic":"promotions","channel":"email","enabled":false}],"quiet_hours":{"start":"22:00","end":"08:00","timezone":"UTC"}}`).ok()
	read := st.do("GET", prefsURL, "")
	if doc := st.do("PUT", prefsURL, string(read.body)).ok(); doc["revision"] != 1.0 {
		t.Errorf("no change led to revision %v", doc["revision"])
	}
	if n := len(st.changes(user)); n != 1 {
		t.Errorf("%d changes, want 1", n)
	}
	doc := st.do("PUT", prefsURL, `{"quiet_hours":{"timezone":"Europe/Berlin"}}`).ok()
	if doc["revision"] != 2.0 || len(doc["preferences"].([]any)) != 1 {
		t.Errorf("%v", doc)
	}
	if d := st.do("POST", "/v1/check", checkOf(user, "promotions", "email")).ok(); d["verdict"] != "suppress" || d["reason"] != "opted_out" {
		t.Errorf("%v", d)
	}
}

func TestAnEditNamesWhatItChanges(t *testing.T) {
	st := newStack(t)
	settings := func(doc map[string]any) int { return len(doc["preferences"].([]any)) }
	st.do("PATCH", prefsURL, optOut).ok()
	if doc := st.do("PUT", prefsURL, `{"preferences":[{"topic":"promotions","channel":"sms","enabled":true}]}`).ok(); settings(doc) != 2 {
		t.Errorf("PUT took away what it did not name: %v", doc)
	}
	if doc := st.do("PATCH", prefsURL, `{"preferences":[{"topic":"promotions","channel":"sms","enabled":null}]}`).ok(); settings(doc) != 1 {
		t.Errorf("null did not unset: %v", doc)
	}
	doc := st.do("PATCH", prefsURL, `{"quiet_hours":{"timezone":"Asia/Tokyo"}}`).ok()
	if diff := cmp.Diff(map[string]any{"enabled": false, "timezone": "Asia/Tokyo"}, doc["quiet_hours"]); diff != "" {
		t.Error(diff)
	}
	st.do("PATCH", prefsURL, `{"quiet_hours":{"start":"22:00","end":"08:00","days":["fri"]}}`).ok()
	doc = st.do("PATCH", prefsURL, `{"quiet_hours":{"days":null,"enabled":false}}`).ok()
	if diff := cmp.Diff(map[string]any{"enabled": false, "start": "22:00", "end": "08:00", "timezone": "Asia/Tokyo"}, doc["quiet_hours"]); diff != "" {
		t.Error(diff)
	}
	if doc = st.do("PATCH", prefsURL, `{"quiet_hours":null}`).ok(); doc["quiet_hours"] != nil {
		t.Errorf("null did not take the quiet hours away: %v", doc)
	}
	st.do("PATCH", prefsURL, `{"frequency_caps":[{"category":"marketing","max_count":3,"window":"24h"}]}`).ok()
	if doc = st.do("PATCH", prefsURL, `{"frequency_caps":[{"category":"marketing","max_count":null,"window":"1d"}]}`).ok(); len(doc["frequency_caps"].([]any)) != 0 {
		t.Errorf("null did not remove the cap: %v", doc)
	}
	before := st.revision(user)
	if doc = st.do("PUT", prefsURL, `{}`).ok(); doc["revision"] != before {
		t.Errorf("an empty edit led to revision %v", doc["revision"])
	}
}

func TestAnEditIsRefused(t *testing.T) {
	st := newStack(t)
	cases := slices.Concat(editRefusals, bodyRefusals)
	for _, z := range []string{"Mars/Base", "america/new_york", "GMT+5", "../UTC", "UTC ", "", "Local"} { // case 10
		cases = append(cases, refusal{"zone " + z, quietHours(fmt.Sprintf(`"start":"22:00","end":"08:00","timezone":%q`, z)), 422, sendgate.CodeInvalidTimezone, "quiet_hours.timezone"})
	}
	for _, end := range []string{"24:01", "25:99", "7:00", "", "10:00"} { // case 9
		cases = append(cases, refusal{"end " + end, quietHours(fmt.Sprintf(`"start":"10:00","end":%q,"timezone":"UTC"`, end)), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.end"})
	}
	for _, start := range []string{"24:00", "25:99", "7:00", ""} {
		cases = append(cases, refusal{"start " + start, quietHours(fmt.Sprintf(`"start":%q,"end":"10:00","timezone":"UTC"`, start)), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.start"})
	}
	for _, w := range []string{"", "0s", "-1h", "1h30m", "01h", "1w", "1.5h", "24H", "24", "1ms", " 24h"} {
		cases = append(cases, refusal{"window " + w, userCap(`"marketing"`, `5`, fmt.Sprintf("%q", w)), 422, sendgate.CodeInvalidCap, "frequency_caps[0].window"})
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			st.t = t
			st.do([]string{"PUT", "PATCH"}[i%2], prefsURL, c.body).refused(c.status, c.code, c.field)
			if r := st.revision(user); r != 0 {
				t.Errorf("revision %v after a refusal", r)
			}
		})
	}
	st.t = t
	if n := len(st.changes(user)); n != 0 {
		t.Errorf("%d changes were logged", n)
	}
	// One wrong entry keeps the right ones from being stored.
	st.do("PUT", prefsURL, `{"preferences":[{"topic":"promotions","channel":"push","enabled":false},{"topic":"promo","channel":"push","enabled":false}]}`).
		refused(422, sendgate.CodeUnknownTopic, "preferences[1].topic")
	if r := st.revision(user); r != 0 {
		t.Errorf("half an edit was stored: revision %v", r)
	}
}

func TestReadOnlyMembersMayComeBack(t *testing.T) {
	st := newStack(t)
	st.do("PATCH", prefsURL, optOut).ok()
	body := `{"user_id":"u_42","revision":1e3,"updated_at":"whenever","global_unsubscribe":false,"holds":[]}`
	if doc := st.do("PUT", prefsURL, body).ok(); doc["revision"] != 1.0 {
		t.Errorf("%v", doc)
	}
}

// Case 7.
func TestParallelEditsAreAllStored(t *testing.T) {
	st := newStackOn(t, redistest.Start(t).Client())
	topics, channels := []string{"promotions", "newsletter", "order_updates", "friend_requests"}, []string{"push", "email", "sms", "in_app"}
	var wg sync.WaitGroup
	got := make([]*answer, len(topics)*len(channels))
	for i := range got {
		wg.Go(func() {
			got[i] = st.do("PATCH", prefsURL, setting(topics[i/4], channels[i%4], "false"))
		})
	}
	wg.Wait()
	var revisions []int
	for _, a := range got {
		revisions = append(revisions, int(a.ok()["revision"].(float64)))
	}
	slices.Sort(revisions)
	for i, r := range revisions {
		if r != i+1 {
			t.Fatalf("revisions %v", revisions)
		}
	}
	if doc := st.do("GET", prefsURL, "").ok(); len(doc["preferences"].([]any)) != len(got) {
		t.Errorf("%v", doc)
	}
	st.do("PATCH", prefsURL, optOut, "If-Match", `"3"`).refused(412, sendgate.CodeRevisionMismatch, "If-Match")
}

func TestUnsubscribeAllWinsARace(t *testing.T) {
	st := newStack(t)
	for i := range 10 {
		id := fmt.Sprintf("r_%d", i)
		var wg sync.WaitGroup
		wg.Go(func() { st.do("PATCH", "/v1/users/"+id+"/preferences", setting("promotions", "push", "true")).ok() })
		wg.Go(func() {
			st.do("POST", "/v1/preferences/unsubscribe-all", `{"user_id":"`+id+`","reason":"user_requested"}`).ok()
		})
		wg.Wait()
		if doc := st.do("GET", "/v1/users/"+id+"/preferences", "").ok(); doc["global_unsubscribe"] != true || doc["revision"] != 2.0 {
			t.Errorf("%v", doc)
		}
		if d := st.do("POST", "/v1/check", checkOf(id, "promotions", "push")).ok(); d["reason"] != "global_unsubscribe" {
			t.Errorf("%v", d)
		}
	}
}
