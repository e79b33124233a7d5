package api

import (
	"iter"
	"net"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// handler answers one request. The error, if any, becomes a problem.
type handler func(s *Server, c *call) (reply, error)

// call is one request, without what routed it. It is used again once it is
// answered.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	rawUser string // the {id} of the path, still escaped
	room    []byte // for the body, and then for the answer
}

// maxRoom is the largest room that is kept for the next request.
const maxRoom = maxBodyBytes

// from is the caller's IP address. What a caller says of itself in
// X-Forwarded-For is not evidence.
func (c *call) from() string {
	host, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// reply is what a handler answers: one of body, text and parts.
type reply struct {
	status int // 0 is 200
	etag   string
	body   any
	text   []byte                  // JSON, encoded already
	parts  iter.Seq2[[]byte, bool] // the same, part by part, with whether it is the last one
}

// routes is the whole interface, but for /metrics. Every route that answers
// GET answers HEAD too.
var routes = []struct {
	methods []string
	pattern string
	answer  handler
}{
	{[]string{http.MethodPost}, "/v1/check", (*Server).check},
	{[]string{http.MethodPost}, "/v1/check/batch", (*Server).checkBatch},
	{[]string{http.MethodPost}, "/v1/explain", (*Server).explain},
	{[]string{http.MethodPost}, "/v1/outcomes", (*Server).reportOutcomes},
	{[]string{http.MethodGet}, "/v1/users/{id}/preferences", (*Server).getPreferences},
	{[]string{http.MethodPut, http.MethodPatch}, "/v1/users/{id}/preferences", (*Server).editPreferences},
	{[]string{http.MethodGet}, "/v1/users/{id}/changes", (*Server).listChanges},
	{[]string{http.MethodPost}, "/v1/preferences/unsubscribe-all", (*Server).unsubscribeAll},
	{[]string{http.MethodPost}, "/v1/preferences/resubscribe", (*Server).resubscribe},
	{[]string{http.MethodPut}, "/v1/limits", (*Server).setLimits},
	{[]string{http.MethodGet}, "/v1/limits", (*Server).listLimits},
	{[]string{http.MethodGet}, "/v1/catalog", (*Server).showCatalog},
	{[]string{http.MethodGet}, "/healthz", (*Server).health},
	{[]string{http.MethodGet}, "/readyz", (*Server).readiness},
	{[]string{http.MethodGet}, "/openapi.yaml", (*Server).showDescription},
}

const metricsPattern = "/metrics"

// route builds the router.
func (s *Server) route() {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.answerError
	e.Use(s.around)
	s.echo, s.patterns = e, map[string]string{}
	for _, r := range routes {
		s.add(r.methods, r.pattern, func(c echo.Context) error { return s.handle(r.answer, c) })
	}
	s.add([]string{http.MethodGet}, metricsPattern, echo.WrapHandler(s.o.Metrics))
}

// handle has a request answered.
func (s *Server) handle(answer handler, in echo.Context) error {
	c, ok := s.calls.Get().(*call)
	if !ok {
		c = &call{}
	}
	c.w, c.r, c.rawUser = in.Response().Writer, in.Request(), in.Param("id")
	given, err := answer(s, c)
	if err == nil {
		err = given.write(in.Response(), in.Request())
	}
	if cap(c.room) > maxRoom {
		c.room = nil
	}
	c.w, c.r = nil, nil
	s.calls.Put(c)
	return err
}

func (s *Server) add(methods []string, pattern string, h echo.HandlerFunc) {
	path := strings.ReplaceAll(pattern, "{id}", ":id")
	s.patterns[path] = pattern
	for _, m := range methods {
		s.echo.Add(m, path, h)
		if m == http.MethodGet {
			s.echo.Add(http.MethodHead, path, h)
		}
	}
}
