package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sendgate/sendgate"
)

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
		req, err := http.NewRequest(http.MethodGet, "http://x/", nil)
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
