package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/sendgate/sendgate"
)

func TestEveryCodeIsInTheTable(t *testing.T) {
	for code, kind := range problemKinds {
		if kind.status < 400 || kind.title == "" {
			t.Errorf("%s: %+v", code, kind)
		}
		p := problemOf(sendgate.Errorf(code, "f", "d"))
		if p.Status != kind.status || p.Type != "/problems/"+string(code) || p.Code != code || p.Errors != nil {
			t.Errorf("%+v", p)
		}
	}
}

func TestWhatIsUnderneathIsNotShown(t *testing.T) {
	for _, err := range []error{
		errors.New("secret"),
		fmt.Errorf("secret: %w", &sendgate.Error{Code: sendgate.CodeStoreUnavailable, Err: errors.New("secret")}),
		&panicked{what: "secret"},
	} {
		w := httptest.NewRecorder()
		if err := problemOf(err).write(w, httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(w.Body.String(), "secret") || w.Code < 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

func TestMethods(t *testing.T) {
	st := newStack(t)
	for _, c := range []struct{ method, target, allow string }{
		{"GET", "/v1/check", "OPTIONS, POST"}, {"HEAD", "/v1/check", "OPTIONS, POST"}, {"PUT", "/v1/check/batch", "OPTIONS, POST"},
		{"DELETE", prefsURL, "OPTIONS, GET, HEAD, PATCH, PUT"}, {"POST", prefsURL, "OPTIONS, GET, HEAD, PATCH, PUT"},
		{"POST", "/v1/catalog", "OPTIONS, GET, HEAD"}, {"BREW", "/healthz", "OPTIONS, GET, HEAD"}, {"TRACE", "/metrics", "OPTIONS, GET, HEAD"},
	} {
		a := st.do(c.method, c.target, "")
		if c.method == "HEAD" {
			if a.status != 405 || len(a.body) != 0 {
				t.Errorf("%s %s: %d %q", c.method, c.target, a.status, a.body)
			}
		} else {
			a.refused(405, sendgate.CodeMethodNotAllowed, "")
		}
		if got := a.header.Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.target, got, c.allow)
		}
		if a = st.do("OPTIONS", c.target, ""); a.status != 204 || a.header.Get("Allow") != c.allow {
			t.Errorf("OPTIONS %s: %d, Allow %q", c.target, a.status, a.header.Get("Allow"))
		}
	}
	for _, target := range []string{prefsURL, "/v1/users/u_42/changes", "/v1/catalog", "/healthz", "/readyz", "/openapi.yaml"} {
		get, head := st.do("GET", target, ""), st.do("HEAD", target, "")
		if head.status != 200 || len(head.body) != 0 {
			t.Errorf("HEAD %s: %d %q", target, head.status, head.body)
		}
		for _, h := range []string{"Content-Length", "Content-Type", "Etag"} {
			if get.header.Get(h) != head.header.Get(h) {
				t.Errorf("HEAD %s: %s %q, GET has %q", target, h, head.header.Get(h), get.header.Get(h))
			}
		}
	}
	for _, target := range []string{"/", "/debug/pprof/", "/v1", "/v1/users", "/problems/not_found", "/openapi.json", "/favicon.ico"} {
		st.do("GET", target, "").refused(404, sendgate.CodeNotFound, "")
	}
}

func TestRequestIDs(t *testing.T) {
	st := newStack(t)
	for _, id := range []string{"a", "req-1/2:3", strings.Repeat("x", 128), "!~"} {
		if got := st.do("GET", "/healthz", "", requestIDHeader, id).header.Get(requestIDHeader); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{"", " ", "a b", strings.Repeat("x", 129), "ü", "a\tb", "\x7f"} {
		got := st.do("GET", "/nowhere", "", requestIDHeader, id).header.Get(requestIDHeader)
		if got == id || len(got) < 20 || seen[got] {
			t.Errorf("%q became %q", id, got)
		}
		seen[got] = true
	}
	if got := st.do("GET", "/healthz", "", requestIDHeader, "a", requestIDHeader, "b").header.Get(requestIDHeader); got == "a" || got == "b" {
		t.Errorf("two ids became %q", got)
	}
}

// observed is one call of Observe.
type observed struct {
	route, method string
	status        int
}

func TestLogsAndMetricsNameNobody(t *testing.T) {
	st := newStack(t)
	var seen []observed
	st.observe = func(route, method string, status int, _ time.Duration) {
		seen = append(seen, observed{route, method, status})
	}
	const secret = "s3cret@x.io"
	path := "/v1/users/" + url.PathEscape(secret)
	st.do("PUT", path+"/preferences", optOut, "Sendgate-Actor", secret, "Sendgate-Reason", secret).ok()
	st.do("GET", path+"/preferences?"+secret, "").ok()
	st.do("GET", path+"/changes?after="+secret, "").refused(422, sendgate.CodeInvalidField, "after")
	st.do("POST", "/v1/check", checkOf(secret, "promotions", "push")).ok()
	st.do("POST", "/v1/check", checkOf("u", secret, "push")).refused(422, sendgate.CodeUnknownTopic, "topic")
	st.do("POST", "/v1/check", `{"`+secret+`":1}`).refused(400, sendgate.CodeUnknownField, secret)
	st.do("POST", unsubscribeURL, `{"user_id":"`+secret+`","reason":"`+secret+`"}`).refused(422, sendgate.CodeInvalidReason, "reason")
	st.do("GET", "/"+secret, "").refused(404, sendgate.CodeNotFound, "")
	st.do(strings.ToUpper("secretmethod"), path+"/changes", "").refused(405, sendgate.CodeMethodNotAllowed, "")
	st.do("GET", "/healthz", "").ok()
	st.store.down.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	st.send(httptest.NewRequestWithContext(ctx, "GET", path+"/preferences", nil)).refused(503, sendgate.CodeStoreUnavailable, "")

	want := []struct {
		observed
		level, code string
	}{
		{observed{"/v1/users/{id}/preferences", "PUT", 200}, "INFO", ""},
		{observed{"/v1/users/{id}/preferences", "GET", 200}, "DEBUG", ""},
		{observed{"/v1/users/{id}/changes", "GET", 422}, "DEBUG", "invalid_field"},
		{observed{"/v1/check", "POST", 200}, "DEBUG", ""},
		{observed{"/v1/check", "POST", 422}, "DEBUG", "unknown_topic"},
		{observed{"/v1/check", "POST", 400}, "DEBUG", "unknown_field"},
		{observed{"/v1/preferences/unsubscribe-all", "POST", 422}, "INFO", "invalid_reason"},
		{observed{"unmatched", "GET", 404}, "DEBUG", "not_found"},
		{observed{"/v1/users/{id}/changes", "other", 405}, "DEBUG", "method_not_allowed"},
		{observed{"/healthz", "GET", 200}, "DEBUG", ""},
		{observed{"/v1/users/{id}/preferences", "GET", statusGone}, "DEBUG", "store_unavailable"},
	}
	lines := st.lines(t)
	if len(lines) != len(want) || len(seen) != len(want) {
		t.Fatalf("%d lines, %d observed, want %d", len(lines), len(seen), len(want))
	}
	for i, w := range want {
		code, _ := lines[i]["code"].(string)
		if seen[i] != w.observed || lines[i]["level"] != w.level || code != w.code || lines[i]["route"] != w.route ||
			lines[i]["method"] != w.method || lines[i]["status"] != float64(w.status) || lines[i]["request_id"] == "" || lines[i]["took"] == nil {
			t.Errorf("%d: %v and %v, want %v", i, seen[i], lines[i], w)
		}
	}
	if text := st.log.String(); strings.Contains(text, "s3cret") || strings.Contains(text, "SECRET") || strings.Contains(text, "u_42") {
		t.Errorf("the log names somebody:\n%s", text)
	}
}

func TestTheStoreIsUnavailable(t *testing.T) {
	st := newStack(t)
	st.do("PUT", prefsURL, optOut).ok()
	st.store.down.Store(true)
	for _, c := range []struct{ method, target, body string }{
		{"GET", prefsURL, ""},
		{"PATCH", prefsURL, setting("promotions", "push", "true")},
	} {
		a := st.do(c.method, c.target, c.body)
		a.refused(503, sendgate.CodeStoreUnavailable, "")
		if a.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
		}
		if strings.Contains(string(a.body), "no route") {
			t.Errorf("what is underneath is shown: %s", a.body)
		}
	}
	lines := st.lines(t)
	last := lines[len(lines)-1]
	if last["level"] != "ERROR" || last["cause"] != "deadline exceeded" || last["code"] != "store_unavailable" {
		t.Errorf("%v", last)
	}
	st.store.down.Store(false)
	if r := st.revision(user); r != 1 {
		t.Errorf("revision %v after a refusal", r)
	}
}

// wound makes the server answer a path with a handler of the test's own.
func (st *stack) wound(path string, h echo.HandlerFunc) { st.server.add([]string{"GET"}, path, h) }

func TestAPanicIsAProblem(t *testing.T) {
	st := newStack(t)
	st.wound("/panics", func(echo.Context) error { panic("s3cret") })
	st.wound("/panics/nil", func(echo.Context) error { var p *answer; p.status = 1; return nil })
	st.wound("/panics/late", func(c echo.Context) error { _ = c.String(200, "half"); panic("s3cret") })
	for _, path := range []string{"/panics", "/panics/nil"} {
		a := st.do("GET", path, "", requestIDHeader, "r1")
		a.refused(500, sendgate.CodeInternal, "")
		if strings.Contains(string(a.body), "s3cret") || strings.Contains(string(a.body), "goroutine") {
			t.Errorf("%s", a.body)
		}
	}
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("half an answer ended with %v", err)
			}
		}()
		st.do("GET", "/panics/late", "")
	}()
	lines := st.lines(t)
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, cause := range []string{"panic: string", "panic: runtime error: invalid memory address or nil pointer dereference", "panic: string"} {
		if l := lines[i]; l["level"] != "ERROR" || l["cause"] != cause || !strings.Contains(l["stack"].(string), "around_test.go") || l["status"] != 500.0 {
			t.Errorf("%v", l)
		}
	}
	if strings.Contains(st.log.String(), "s3cret") {
		t.Error("what was panicked with is in the log")
	}
	st.do("GET", "/healthz", "").ok()
}

func TestReadiness(t *testing.T) {
	st := newStack(t)
	for _, c := range []struct {
		parts  []Part
		status int
		body   string
	}{
		{nil, 200, `{"status":"ok","parts":[]}`},
		{[]Part{{"store", PartOK, ""}, {"filter", PartDegraded, "no snapshot"}}, 200,
			`{"status":"degraded","parts":[{"name":"store","state":"ok"},{"name":"filter","state":"degraded","detail":"no snapshot"}]}`},
		{[]Part{{"store", PartMissing, "down"}, {"filter", PartDegraded, ""}}, 503,
			`{"status":"missing","parts":[{"name":"store","state":"missing","detail":"down"},{"name":"filter","state":"degraded"}]}`},
	} {
		st.parts = c.parts
		if a := st.do("GET", "/readyz", ""); a.status != c.status || string(a.body) != c.body+"\n" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

func TestTheCatalogIsShown(t *testing.T) {
	st := newStack(t)
	a, b := st.do("GET", "/v1/catalog", ""), st.do("GET", "/v1/catalog", "")
	if string(a.body) != string(b.body) {
		t.Error("the order of the catalog changes")
	}
	doc := a.ok()
	cap0 := doc["categories"].(map[string]any)["marketing"].(map[string]any)["caps"].([]any)[0].(map[string]any)
	if cap0["window"] != "24h" || cap0["limit"] != 2.0 || doc["default_timezone"] != "UTC" {
		t.Errorf("%v", doc)
	}
}

func TestAZeroServerAnswers(t *testing.T) {
	st := newStack(t)
	bare := New(Options{Gate: st.server.o.Gate, Preferences: st.server.o.Preferences})
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, "/v1/catalog": 200} {
		w := httptest.NewRecorder()
		bare.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != status {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestEveryRouteIsNamedOnce(t *testing.T) {
	st := newStack(t)
	var registered []string
	for _, r := range st.server.echo.Routes() {
		if _, ok := st.server.patterns[r.Path]; !ok {
			t.Errorf("%s %s has no pattern", r.Method, r.Path)
		}
		registered = append(registered, r.Method+" "+r.Path)
	}
	slices.Sort(registered)
	if n := len(slices.Compact(slices.Clone(registered))); n != len(registered) {
		t.Errorf("a route stands twice: %v", registered)
	}
}
