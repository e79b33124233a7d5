package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/pb33f/libopenapi-validator/errors"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// contract is the description, as something to hold the server against.
type contract struct {
	t     testing.TB
	model *v3.Document
	validator.Validator
}

func readContract(t testing.TB) *contract {
	t.Helper()
	doc, err := libopenapi.NewDocument(description)
	if err != nil {
		t.Fatal(err)
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	// Strict mode finds members that are not described. It does not know that
	// additionalProperties describes some.
	v, errs := validator.NewValidator(doc, config.WithFormatAssertions(), config.WithStrictMode(),
		config.WithStrictIgnorePaths("$.body.attributes.*", "$.body.categories.*", "$.body.topics.*", "$.body.topics.*.channels.*",
			"$.body.changes[*].what[*].before.*", "$.body.changes[*].what[*].after.*"),
		config.WithStrictIgnoredHeadersExtra("X-Content-Type-Options", "Cache-Control", "Content-Length", "Retry-After", "Accept", "Allow"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return &contract{t, &model.Model, v}
}

// operation is one operation of the description.
type operation struct {
	method, pattern string
	*v3.Operation
}

func (c *contract) operations() (ops []operation) {
	for pattern, item := range c.model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			ops = append(ops, operation{strings.ToUpper(method), pattern, op})
		}
	}
	return ops
}

// valid reports what the validator has found.
func (c *contract) valid(what string, ok bool, errs []*errors.ValidationError) {
	c.t.Helper()
	if ok {
		return
	}
	for _, e := range errs {
		c.t.Errorf("%s: %s: %s", what, e.Message, e.Reason)
		for _, s := range e.SchemaValidationErrors {
			c.t.Errorf("  at %s: %s", s.FieldPath, s.Reason)
		}
	}
}

// response is an answer as the validator takes it.
func (a *answer) response() *http.Response {
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body))}
}

func request(method, target, body string, headers ...string) *http.Request {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, target, r)
	if body != "" {
		req.Header.Set("Content-Type", jsonType)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// holds sends a request and holds it and its answer against the description.
func (c *contract) holds(st *stack, status int, method, target, body string, headers ...string) *answer {
	c.t.Helper()
	a := st.send(request(method, target, body, headers...))
	if a.status != status {
		c.t.Fatalf("%s %s %s: %d, want %d: %s", method, target, body, a.status, status, a.body)
	}
	if status < 300 {
		ok, errs := c.ValidateHttpRequest(request(method, target, body, headers...))
		c.valid(method+" "+target+" "+body, ok, errs)
	}
	ok, errs := c.ValidateHttpResponse(request(method, target, body, headers...), a.response())
	c.valid(fmt.Sprintf("the answer of %s %s %s: %s", method, target, body, a.body), ok, errs)
	return a
}

func jsonExample(t testing.TB, node interface{ Decode(any) error }) string {
	t.Helper()
	var v any
	if err := node.Decode(&v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheDescriptionIsOpenAPI(t *testing.T) {
	c := readContract(t)
	ok, errs := c.ValidateDocument()
	c.valid("openapi.yaml", ok, errs)
	st := newStack(t)
	if a := st.do("GET", "/openapi.yaml", ""); !bytes.Equal(a.body, description) || a.header.Get("Content-Type") != "application/yaml" {
		t.Error("what is served is another document")
	}
}

func TestEachRouteIsDescribedAndEachOperationRouted(t *testing.T) {
	var described, routed []string
	for _, op := range readContract(t).operations() {
		described = append(described, op.method+" "+op.pattern)
	}
	st := newStack(t)
	for _, r := range st.server.echo.Routes() {
		if r.Method != http.MethodHead {
			routed = append(routed, r.Method+" "+st.server.patterns[r.Path])
		}
	}
	slices.Sort(described)
	slices.Sort(routed)
	if diff := cmp.Diff(described, routed); diff != "" {
		t.Errorf("described (-), routed (+):\n%s", diff)
	}
}

func TestEachCodeIsDescribed(t *testing.T) {
	c := readContract(t)
	var described, known []string
	for _, node := range c.model.Components.Schemas.GetOrZero("Code").Schema().Enum {
		described = append(described, node.Value)
	}
	for code := range problemKinds {
		known = append(known, string(code))
	}
	slices.Sort(described)
	slices.Sort(known)
	if diff := cmp.Diff(described, known); diff != "" {
		t.Errorf("described (-), known (+):\n%s", diff)
	}
	// Each has an example, which says what the table says.
	shown := map[string]bool{}
	for _, r := range c.model.Components.Responses.FromOldest() {
		media, ok := r.Content.Get("application/problem+json")
		if !ok {
			continue
		}
		for name, example := range media.Examples.FromOldest() {
			var p problem
			if err := json.Unmarshal([]byte(jsonExample(t, example.Value)), &p); err != nil {
				t.Fatal(err)
			}
			kind := problemKinds[p.Code]
			header := p.Field == "If-Match" && p.Status == 400
			if p.Title != kind.title || p.Status != kind.status && !header || p.Type != problemTypes+string(p.Code) {
				t.Errorf("%s: %+v, the table has %+v", name, p, kind)
			}
			shown[string(p.Code)] = true
		}
	}
	for _, code := range known {
		if !shown[code] {
			t.Errorf("%s has no example", code)
		}
	}
}

// target is a path of an operation with the examples of its parameters.
func (op operation) target(c *contract) string {
	c.t.Helper()
	path := strings.ReplaceAll(op.pattern, "{id}", "u_42")
	var query []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			query = append(query, p.Name+"="+p.Example.Value)
		}
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	return path
}

func TestTheExamplesWork(t *testing.T) {
	c := readContract(t)
	for _, op := range c.operations() {
		bodies := map[string]string{"": ""}
		if op.RequestBody != nil {
			clear(bodies)
			for name, example := range op.RequestBody.Content.GetOrZero(jsonType).Examples.FromOldest() {
				bodies[name] = jsonExample(t, example.Value)
			}
			if len(bodies) == 0 {
				t.Errorf("%s has no example of a body", op.OperationId)
			}
		}
		for name, body := range bodies {
			t.Run(op.OperationId+"/"+name, func(t *testing.T) {
				own, st := *c, newStack(t)
				own.t = t
				own.holds(st, 200, op.method, op.target(&own), body)
			})
		}
		for code, r := range op.Responses.Codes.FromOldest() {
			status, err := strconv.Atoi(code)
			if err != nil {
				t.Fatal(err)
			}
			for mediaType, media := range r.Content.FromOldest() {
				for name, example := range media.Examples.FromOldest() {
					h := http.Header{"Content-Type": {mediaType}, requestIDHeader: {"r"}, "Etag": {`"7"`}, "Retry-After": {"1"}}
					a := &answer{t, status, h, []byte(jsonExample(t, example.Value))}
					ok, errs := c.ValidateHttpResponse(request(op.method, op.target(c), ""), a.response())
					c.valid(fmt.Sprintf("%s %s %s", op.OperationId, code, name), ok, errs)
				}
			}
		}
	}
}

func TestRealAnswersAreAsDescribed(t *testing.T) {
	c, st := readContract(t), newStack(t)
	full := `{"preferences":[{"topic":"promotions","channel":"push","enabled":false},{"topic":"newsletter","channel":"sms","enabled":true}],` +
		`"quiet_hours":{"start":"22:00","end":"24:00","days":["mon"],"timezone":"Europe/Berlin"},"frequency_caps":[{"category":"marketing","max_count":5,"window":"90m"}]}`
	c.holds(st, 200, "GET", prefsURL, "")
	c.holds(st, 200, "PUT", prefsURL, full, "Sendgate-Actor", "a", "Sendgate-Reason", "b", "If-Match", `"0"`)
	c.holds(st, 200, "POST", unsubscribeURL, `{"user_id":"u_42","reason":"account_deletion"}`)
	c.holds(st, 200, "POST", unsubscribeURL, `{"user_id":"u_42","reason":"operator_block"}`)
	doc := c.holds(st, 200, "GET", prefsURL, "")
	c.holds(st, 200, "PATCH", prefsURL, strings.TrimSpace(string(doc.body)))
	c.holds(st, 200, "PATCH", prefsURL, `{"quiet_hours":null,"frequency_caps":[{"category":"marketing","max_count":null,"window":"90m"}]}`)
	c.holds(st, 200, "GET", "/v1/users/u_42/changes?after=0&limit=10", "")
	for i := range 3 {
		body := fmt.Sprintf(`{"notification_id":"n_%d","user_id":"u_43","topic":"promotions","channel":"push","attributes":{"region":"eu"},"priority":"low"}`, i)
		c.holds(st, 200, "POST", "/v1/check", body)
	}
	c.holds(st, 200, "PUT", "/v1/users/u_43/preferences", `{"quiet_hours":{"start":"09:00","end":"10:00","timezone":"UTC"}}`)
	c.holds(st, 200, "POST", "/v1/check", checkOf("u_43", "promotions", "push"))
	c.holds(st, 200, "POST", "/v1/explain", checkOf("u_43", "promotions", "push"))
	c.holds(st, 200, "POST", "/v1/explain", checkOf("u_42", "security_alerts", "push"))
	for _, target := range []string{"/v1/catalog", "/healthz", "/readyz", "/metrics", "/openapi.yaml"} {
		c.holds(st, 200, "GET", target, "")
	}
	st.parts = []Part{{"store", PartMissing, "down"}, {"filter", PartDegraded, ""}}
	c.holds(st, 503, "GET", "/readyz", "")
}

func TestRealRefusalsAreAsDescribed(t *testing.T) {
	c, st := readContract(t), newStack(t)
	for _, r := range slices.Concat(checkRefusals, bodyRefusals) {
		c.holds(st, r.status, "POST", "/v1/check", r.body)
		c.holds(st, r.status, "POST", "/v1/explain", r.body)
	}
	for _, r := range slices.Concat(editRefusals, bodyRefusals) {
		c.holds(st, r.status, "PUT", prefsURL, r.body)
		c.holds(st, r.status, "PATCH", prefsURL, r.body)
	}
	for _, r := range bodyRefusals {
		c.holds(st, r.status, "POST", "/v1/check/batch", r.body)
		c.holds(st, r.status, "POST", "/v1/outcomes", r.body)
		c.holds(st, r.status, "POST", unsubscribeURL, r.body)
		c.holds(st, r.status, "POST", resubscribeURL, r.body)
	}
	c.holds(st, 412, "PUT", prefsURL, optOut, "If-Match", `"5"`)
	c.holds(st, 400, "PUT", prefsURL, optOut, "If-Match", `5`)
	c.holds(st, 422, "GET", "/v1/users/u_42/changes?limit=0", "")
	c.holds(st, 400, "GET", "/v1/users/%00/preferences", "")
	c.holds(st, 400, "GET", "/v1/users/%00/changes", "")
	c.holds(st, 413, "POST", "/v1/check", `"`+strings.Repeat("x", maxBodyBytes)+`"`)
	c.holds(st, 415, "POST", "/v1/check", `{}`, "Content-Type", "text/plain")
	st.store.down.Store(true)
	c.holds(st, 503, "GET", prefsURL, "")
}

// What the description lets through, the server takes, and the other way
// round: a body that its schema refuses is refused here.
func TestTheSchemasAreAsStrict(t *testing.T) {
	c := readContract(t)
	for _, r := range checkRefusals {
		if r.code == "unknown_topic" || r.code == "unknown_channel" || r.code == "duplicate_field" || r.name == "control character in a user" {
			continue // beyond any schema
		}
		ok, _ := c.ValidateHttpRequest(request("POST", "/v1/check", r.body))
		if ok {
			t.Errorf("%s: the description takes %s", r.name, r.body)
		}
	}
}
