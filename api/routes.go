package api

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// handler answers one request. The error, if any, becomes a problem.
type handler func(s *Server, c *call) (reply, error)

// call is one request, without what routed it.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	rawUser string // the {id} of the path, still escaped
	from    string // the caller's IP address
}

// reply is what a handler answers.
type reply struct {
	status int // 0 is 200
	etag   string
	body   any
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
	e.IPExtractor = echo.ExtractIPDirect() // what a caller says of itself in X-Forwarded-For is not evidence
	e.HTTPErrorHandler = s.answerError
	e.Use(s.around)
	s.echo, s.patterns = e, map[string]string{}
	for _, r := range routes {
		s.add(r.methods, r.pattern, func(c echo.Context) error {
			answer, err := r.answer(s, &call{w: c.Response().Writer, r: c.Request(), rawUser: c.Param("id"), from: c.RealIP()})
			if err != nil {
				return err
			}
			return answer.write(c.Response(), c.Request())
		})
	}
	s.add([]string{http.MethodGet}, metricsPattern, echo.WrapHandler(s.o.Metrics))
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
