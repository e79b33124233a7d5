package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

func setting(topic, channel, enabled string) string {
	return fmt.Sprintf(`{"preferences":[{"topic":%q,"channel":%q,"enabled":%s}]}`, topic, channel, enabled)
}

func quietHours(members string) string { return `{"quiet_hours":{` + members + `}}` }

func userCap(category, count, window string) string {
	return fmt.Sprintf(`{"frequency_caps":[{"category":%s,"max_count":%s,"window":%s}]}`, category, count, window)
}

var editRefusals = []refusal{
	{"an array", `[]`, 400, sendgate.CodeMalformedJSON, ""},
	{"unknown member", `{"preference":[]}`, 400, sendgate.CodeUnknownField, "preference"},
	{"another case", `{"Preferences":[]}`, 400, sendgate.CodeUnknownField, "Preferences"},
	{"member twice", `{"preferences":[],"preferences":[]}`, 400, sendgate.CodeDuplicateField, "preferences"},
	{"unknown member of an entry", `{"preferences":[{"topic":"promotions","channel":"push","enabled":false},{"topics":1}]}`, 400, sendgate.CodeUnknownField, "preferences[1].topics"},
	{"member of an entry twice", `{"preferences":[{"enabled":false,"enabled":true}]}`, 400, sendgate.CodeDuplicateField, "preferences[0].enabled"},
	{"preferences null", `{"preferences":null}`, 400, sendgate.CodeMalformedJSON, "preferences"},
	{"an entry null", `{"preferences":[null]}`, 400, sendgate.CodeMalformedJSON, "preferences[0]"},
	{"enabled a string", setting("promotions", "push", `"false"`), 400, sendgate.CodeMalformedJSON, "preferences[0].enabled"},
	{"enabled a number", setting("promotions", "push", `0`), 400, sendgate.CodeMalformedJSON, "preferences[0].enabled"},
	{"enabled missing", `{"preferences":[{"topic":"promotions","channel":"push"}]}`, 422, sendgate.CodeMissingField, "preferences[0].enabled"},
	{"topic missing", `{"preferences":[{"channel":"push","enabled":true}]}`, 422, sendgate.CodeMissingField, "preferences[0].topic"},
	{"channel null", `{"preferences":[{"topic":"promotions","channel":null,"enabled":true}]}`, 422, sendgate.CodeMissingField, "preferences[0].channel"},
	{"unknown topic", setting("promo", "push", "true"), 422, sendgate.CodeUnknownTopic, "preferences[0].topic"},
	{"unknown channel", setting("promotions", "fax", "true"), 422, sendgate.CodeUnknownChannel, "preferences[0].channel"},
	{"essential topic off", setting("security_alerts", "push", "false"), 422, sendgate.CodeEssentialTopic, "preferences[0].enabled"},
	{"the same entry twice", `{"preferences":[{"topic":"promotions","channel":"push","enabled":false},{"topic":"promotions","channel":"push","enabled":false}]}`, 422, sendgate.CodeDuplicateEntry, "preferences[1]"},

	{"quiet hours a string", `{"quiet_hours":"off"}`, 400, sendgate.CodeMalformedJSON, "quiet_hours"},
	{"unknown member of quiet hours", quietHours(`"zone":"UTC"`), 400, sendgate.CodeUnknownField, "quiet_hours.zone"},
	{"a day a number", quietHours(`"days":["mon",2]`), 400, sendgate.CodeMalformedJSON, "quiet_hours.days[1]"},
	{"a day null", quietHours(`"days":[null]`), 400, sendgate.CodeMalformedJSON, "quiet_hours.days[0]"},
	{"start null", quietHours(`"start":null`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.start"},
	{"end null", quietHours(`"end":null`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.end"},
	{"enabled null", quietHours(`"enabled":null`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.enabled"},
	{"timezone null", quietHours(`"timezone":null`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.timezone"},
	{"unknown day", quietHours(`"start":"22:00","end":"08:00","timezone":"UTC","days":["Mon"]`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.days"},
	{"a day twice", quietHours(`"start":"22:00","end":"08:00","timezone":"UTC","days":["mon","mon"]`), 422, sendgate.CodeInvalidQuietHours, "quiet_hours.days"},
	{"no end", quietHours(`"start":"22:00","timezone":"UTC"`), 422, sendgate.CodeMissingField, "quiet_hours.end"},
	{"no zone", quietHours(`"start":"22:00","end":"08:00"`), 422, sendgate.CodeMissingField, "quiet_hours.timezone"},

	{"caps an object", `{"frequency_caps":{}}`, 400, sendgate.CodeMalformedJSON, "frequency_caps"},
	{"max_count a string", userCap(`"marketing"`, `"5"`, `"24h"`), 400, sendgate.CodeMalformedJSON, "frequency_caps[0].max_count"},
	{"window a number", userCap(`"marketing"`, `5`, `86400`), 400, sendgate.CodeMalformedJSON, "frequency_caps[0].window"},
	{"max_count missing", `{"frequency_caps":[{"category":"marketing","window":"24h"}]}`, 422, sendgate.CodeMissingField, "frequency_caps[0].max_count"},
	{"window missing", `{"frequency_caps":[{"category":"marketing","max_count":5}]}`, 422, sendgate.CodeMissingField, "frequency_caps[0].window"},
	{"category null", userCap(`null`, `5`, `"24h"`), 422, sendgate.CodeMissingField, "frequency_caps[0].category"},
	{"unknown category", userCap(`"spam"`, `5`, `"24h"`), 422, sendgate.CodeUnknownCategory, "frequency_caps[0].category"},
	{"category that takes none", userCap(`"social"`, `5`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].category"},
	{"above the ceiling", userCap(`"marketing"`, `21`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].max_count"},
	{"below nothing", userCap(`"marketing"`, `-1`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].max_count"},
	{"a fraction", userCap(`"marketing"`, `1.5`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].max_count"},
	{"more than any number", userCap(`"marketing"`, `99999999999999999999`, `"24h"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].max_count"},
	{"window too long", userCap(`"marketing"`, `5`, `"32d"`), 422, sendgate.CodeInvalidCap, "frequency_caps[0].window"},
	{"the same cap twice", `{"frequency_caps":[{"category":"marketing","max_count":5,"window":"24h"},{"category":"marketing","max_count":6,"window":"1d"}]}`, 422, sendgate.CodeDuplicateEntry, "frequency_caps[1]"},

	{"another user", `{"user_id":"u_43"}`, 422, sendgate.CodeReadOnlyField, "user_id"},
	{"user a number", `{"user_id":42}`, 400, sendgate.CodeMalformedJSON, "user_id"},
	{"user null", `{"user_id":null}`, 400, sendgate.CodeMalformedJSON, "user_id"},
	{"revision a string", `{"revision":"1"}`, 400, sendgate.CodeMalformedJSON, "revision"},
	{"revision null", `{"revision":null}`, 400, sendgate.CodeMalformedJSON, "revision"},
	{"updated_at a number", `{"updated_at":1}`, 400, sendgate.CodeMalformedJSON, "updated_at"},
	{"another flag", `{"global_unsubscribe":true}`, 422, sendgate.CodeReadOnlyField, "global_unsubscribe"},
	{"flag a string", `{"global_unsubscribe":"false"}`, 400, sendgate.CodeMalformedJSON, "global_unsubscribe"},
	{"another hold", `{"holds":[{"source":"user","reason":"gdpr_request","retain_essential":true,"at":"2026-12-01T09:30:00.000Z"}]}`, 422, sendgate.CodeReadOnlyField, "holds"},
	{"half a hold", `{"holds":[{}]}`, 422, sendgate.CodeReadOnlyField, "holds"},
	{"unknown member of a hold", `{"holds":[{"until":"x"}]}`, 400, sendgate.CodeUnknownField, "holds[0].until"},
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

// Case 8, and what else an id may hold.
func TestEveryIDIsAUserOfItsOwn(t *testing.T) {
	st := newStack(t)
	ids := []string{
		"a+b@x.io", "a b@x.io", "a%2Bb@x.io", "a:b", "{a}", "a/b", "a%2Fb", "ÜSER", "üser",
		"100%", "100%25", "?", "a?b=c", "#", "a#b", "..", ".", "/", "//", "%", "+", " ", "a/", "/a", "../x", "a;b", "preferences", "*", ":id", `a\b`, `"`, "🙂", "a%252Fb",
	}
	for i, id := range ids {
		path := "/v1/users/" + url.PathEscape(id) + "/preferences"
		doc := st.do("PUT", path, optOut).ok()
		if doc["user_id"] != id || doc["revision"] != 1.0 {
			t.Fatalf("%q: %v", id, doc)
		}
		body, err := json.Marshal(map[string]any{"user_id": id, "reason": fmt.Sprintf("for %d", i)})
		if err != nil {
			t.Fatal(err)
		}
		if doc := st.do("POST", "/v1/preferences/resubscribe", string(body)).ok(); doc["user_id"] != id {
			t.Errorf("%q: %v", id, doc)
		}
		if doc := st.do("PUT", path, string(st.do("GET", path, "").body)).ok(); doc["revision"] != 1.0 {
			t.Errorf("%q: what was read is not the user's own: %v", id, doc)
		}
	}
	for _, id := range ids {
		var check map[string]any
		if check = st.do("POST", "/v1/check", checkOf(id, "promotions", "push")).ok(); check["verdict"] != "suppress" || check["user_id"] != id {
			t.Errorf("%q: %v", id, check)
		}
		// Every byte escaped, and sent raw where that is legal, are the same user.
		var escaped strings.Builder
		for _, b := range []byte(id) {
			fmt.Fprintf(&escaped, "%%%02x", b)
		}
		if doc := st.do("GET", "/v1/users/"+escaped.String()+"/changes?user_id=other&limit=5", "").ok(); len(doc["changes"].([]any)) != 1 {
			t.Errorf("%q: %v", id, doc)
		}
	}
	// A brace that a client left bare makes Go forget how the slash was sent.
	if doc := st.do("GET", "/v1/users/a%2Fb{/preferences", "").ok(); doc["user_id"] != "a/b{" {
		t.Errorf("%v", doc)
	}
	for _, other := range []string{"üSER", "A:b", "a b@x.io ", "%2e%2e%2f"} {
		if st.revision(url.PathEscape(other)) != 0 {
			t.Errorf("%q was merged with another user", other)
		}
	}
}

func TestAnIDInThePathIsRefused(t *testing.T) {
	st := newStack(t)
	for _, id := range []string{"", "%00", "%7f", "%ff", "%c3%28", "%ed%a0%80", "a%0ab", strings.Repeat("u", 257), strings.Repeat("%41", 257)} {
		st.do("GET", "/v1/users/"+id+"/preferences", "").refused(400, sendgate.CodeInvalidUserID, "user_id")
		st.do("GET", "/v1/users/"+id+"/changes", "").refused(400, sendgate.CodeInvalidUserID, "user_id")
		st.do("PUT", "/v1/users/"+id+"/preferences", optOut).refused(400, sendgate.CodeInvalidUserID, "user_id")
	}
	// A server that is handed an escape which net/http would not let through.
	for _, id := range []string{"%zz", "%4", "%"} {
		req, err := http.NewRequest("GET", "http://x/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.RawPath = "/v1/users/" + id + "/preferences"
		st.send(req).refused(400, sendgate.CodeInvalidUserID, "user_id")
	}
	for _, path := range []string{"/v1/users/a/b/preferences", "/v1/users/a/preferences/", "/v1/users/a//preferences", "/v1/users/a", "/v1/check/", "//v1/check", "/V1/check", "/v1/x/../check"} {
		st.do("GET", path, "").refused(404, sendgate.CodeNotFound, "")
	}
}

func TestIfMatch(t *testing.T) {
	st := newStack(t)
	st.do("PUT", prefsURL, optOut).ok()
	edit := func(i int) string { return setting("promotions", "sms", []string{"true", "false"}[i%2]) }
	for i, c := range []struct {
		header string
		status int
	}{
		{`"%d"`, 200}, {` "%d" `, 200}, {`*`, 200}, {`"0", "%d"`, 200}, {`"%d","999"`, 200}, {`W/"1","%d"`, 200}, {`"a,b" , "%d"`, 200}, {`,"%d",`, 200},
		{`"0"`, 412}, {`"999"`, 412}, {`W/"%d"`, 412}, {`"0%d"`, 412}, {`"+%d"`, 412}, {`""`, 412}, {`"seven"`, 412}, {`"0","999"`, 412}, {`"9999999999999999999999"`, 412},
		{`%d`, 400}, {`"%d`, 400}, {`%d"`, 400}, {`w/"%d"`, 400}, {`"%d" "0"`, 400}, {`*,"%d"`, 400}, {`"%d",*`, 400}, {`,`, 400}, {`"a b"`, 400}, {`'%d'`, 400},
	} {
		before := st.revision(user)
		header := strings.ReplaceAll(c.header, "%d", fmt.Sprint(before))
		a := st.do("PATCH", prefsURL, edit(i), "If-Match", header)
		switch c.status {
		case 200:
			if a.ok(); a.header.Get("ETag") != fmt.Sprintf(`"%v"`, before+1) {
				t.Errorf("%s: ETag %s after %v", header, a.header.Get("ETag"), before)
			}
			continue
		case 412:
			a.refused(412, sendgate.CodeRevisionMismatch, "If-Match")
		default:
			a.refused(400, sendgate.CodeInvalidField, "If-Match")
		}
		if after := st.revision(user); after != before {
			t.Errorf("%s: revision %v after %v", header, after, before)
		}
	}
	// A header on several lines is one list.
	st.do("PATCH", prefsURL, edit(0), "If-Match", `"0"`, "If-Match", fmt.Sprintf(`"%v"`, st.revision(user))).ok()
	// Nobody has seen this user, and there is a document all the same.
	st.do("PATCH", "/v1/users/new/preferences", optOut, "If-Match", "*").ok()
	st.do("PATCH", "/v1/users/newer/preferences", optOut, "If-Match", `"0"`).ok()
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

// Of many who race with a list of the same revisions, one has each.
func TestAListOfRevisionsStaysAtomic(t *testing.T) {
	st := newStack(t)
	var wg sync.WaitGroup
	got := make([]*answer, 12)
	for i := range got {
		wg.Go(func() {
			got[i] = st.do("PATCH", prefsURL, userCap(`"marketing"`, `5`, fmt.Sprintf(`"%ds"`, i+1)), "If-Match", `"0", "1", "2"`)
		})
	}
	wg.Wait()
	made := 0
	for _, a := range got {
		if a.status == 200 {
			made++
		} else {
			a.refused(412, sendgate.CodeRevisionMismatch, "If-Match")
		}
	}
	if r := st.revision(user); made != 3 || r != 3 {
		t.Errorf("%d edits made, revision %v; want 3", made, r)
	}
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
