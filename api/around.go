package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/sendgate/sendgate"
)

const (
	requestIDHeader   = "X-Request-Id" // as net/http spells its keys
	maxRequestIDBytes = 128

	// unmatched is the route of a request that none answers.
	unmatched = "unmatched"
	// statusGone stands in logs and metrics, never on the wire, for a request
	// that failed because its caller went away.
	statusGone = 499
)

// The values of headers that every answer has. They are never changed.
var noSniff, noStore = []string{"nosniff"}, []string{"no-store"}

// around stands around every request, also those that no route answers: it
// gives the request its id, turns errors and panics into problems, and says
// what became of it.
func (s *Server) around(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := s.o.Now()
		id := requestID(c.Request())
		h := c.Response().Header()
		h[requestIDHeader] = []string{id}
		h["X-Content-Type-Options"] = noSniff
		h["Cache-Control"] = noStore
		err := guarded(next, c)
		if err != nil {
			err = s.failed(err, c)
		}
		s.report(c, id, err, s.o.Now().Sub(began))
		if panicOf(err) != nil && c.Response().Status < http.StatusInternalServerError {
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
		return nil
	}
}

// failed answers a request that ended with an error, and returns what that is
// once the router's own is told apart.
func (s *Server) failed(err error, c echo.Context) error {
	var unrouted *echo.HTTPError
	if errors.As(err, &unrouted) {
		err = routingError(unrouted.Code)
	}
	s.answerError(err, c)
	return err
}

// panicked is the error of a handler that panicked.
type panicked struct {
	what  string
	stack []byte
}

func (p *panicked) Error() string { return "panic: " + p.what }

// panicOf is the panic in an error, or nil.
func panicOf(err error) *panicked {
	if err == nil {
		return nil
	}
	var p *panicked
	errors.As(err, &p)
	return p
}

// guarded runs a handler and turns its panic into an error. What was panicked
// with is kept by type alone, unless it is the runtime's: it may hold anything.
func guarded(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case http.ErrAbortHandler:
			panic(r)
		default:
			p := &panicked{what: fmt.Sprintf("%T", r), stack: debug.Stack()}
			if re, ok := r.(interface{ RuntimeError() }); ok {
				p.what = fmt.Sprint(re)
			}
			err = p
		}
	}()
	return next(c)
}

// answerError writes the problem for an error, unless an answer has begun.
func (s *Server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	// A caller who is gone does not read it.
	_ = problemOf(err).write(c.Response(), c.Request())
}

// routingError is the refusal of a request that no route answers.
func routingError(status int) error {
	switch status {
	case http.StatusNotFound:
		return sendgate.Errorf(sendgate.CodeNotFound, "", "there is nothing at this path")
	case http.StatusMethodNotAllowed:
		return sendgate.Errorf(sendgate.CodeMethodNotAllowed, "", "the methods of this path are in the header Allow")
	}
	return fmt.Errorf("the router answered %d", status)
}

// requestID is the caller's id for a request if it is 1 to 128 visible ASCII
// characters, and a new one otherwise. Ids tell requests apart and need not be
// hard to guess.
func requestID(r *http.Request) string {
	given := r.Header[requestIDHeader]
	if len(given) != 1 || given[0] == "" || len(given[0]) > maxRequestIDBytes ||
		strings.ContainsFunc(given[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
		const top = 1 << 63 // for all to be of one length
		var id [26]byte
		return string(strconv.AppendUint(strconv.AppendUint(id[:0], top|rand.Uint64(), 32), top|rand.Uint64(), 32))
	}
	return given[0]
}

// report tells the log and the metrics what became of a request.
func (s *Server) report(c echo.Context, id string, err error, took time.Duration) {
	r, status := c.Request(), c.Response().Status
	p := panicOf(err)
	switch {
	case p != nil:
		status = http.StatusInternalServerError
	case status >= http.StatusInternalServerError && r.Context().Err() != nil:
		status = statusGone
	}
	route, ok := s.patterns[c.Path()]
	if !ok {
		route = unmatched
	}
	method := methodLabel(r.Method)
	s.o.Observe(route, method, status, took)
	level := levelOf(method, route, status)
	if !s.o.Log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("route", route), slog.String("method", method), slog.Int("status", status),
		slog.Duration("took", took), slog.String("request_id", id),
	}
	if err != nil {
		attrs = append(attrs, slog.String("code", string(problemOf(err).code())))
	}
	if err != nil && level == slog.LevelError {
		attrs = append(attrs, slog.String("cause", causeOf(err)))
	}
	if p != nil {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	s.o.Log.LogAttrs(context.WithoutCancel(r.Context()), level, "request", attrs...)
}

// levelOf: what went wrong here is an error, writes are worth a line, and the
// rest is too much at 58,000 checks a second.
func levelOf(method, route string, status int) slog.Level {
	switch {
	case status >= http.StatusInternalServerError && route != "/readyz":
		return slog.LevelError
	case method == http.MethodPut, method == http.MethodPatch, strings.HasPrefix(route, "/v1/preferences/"):
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// methodLabel keeps what a caller makes up out of logs and metrics.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// causeOf says what is underneath an error without its text, which may hold
// keys, and so users.
func causeOf(err error) string {
	if p := panicOf(err); p != nil {
		return p.Error()
	}
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return fmt.Sprintf("%T", err)
}
