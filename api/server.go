package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/limits"
	"github.com/sendgate/sendgate/prefs"
)

// The limits of a connection. A body of the largest batch passes within
// readLimit on a line of 2 Mbit/s.
const (
	headerLimit    = 5 * time.Second  // until the headers of a request are there
	readLimit      = 10 * time.Second // until its body is, too
	writeLimit     = 20 * time.Second // from the end of its headers until it is answered
	idleLimit      = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	drainLimit     = 10 * time.Second // for requests in flight when the server ends
)

// Options are what a Server is made of. Gate, Preferences and Limits are required.
type Options struct {
	Gate        *sendgate.Gate
	Preferences *prefs.Service
	Limits      *limits.Service
	// Ready says how the parts that the server leans on are; nil is none.
	Ready func() []Part
	// Metrics answers /metrics; nil is not found.
	Metrics http.Handler
	// Observe is told of every request: the pattern of its route, never its
	// path, or `unmatched`. It must be quick and safe for concurrent use.
	Observe func(route, method string, status int, took time.Duration)
	// Linger is how long, once it is to end, the server says that it is not
	// ready and answers all the same, so that whoever sends it requests finds
	// out first.
	Linger time.Duration
	// Log takes one line per request; nil is none.
	Log *slog.Logger
	// Now is the clock of took; nil is the machine's.
	Now func() time.Time
}

// Server answers HTTP requests. It is an http.Handler and safe for concurrent
// use.
type Server struct {
	o        Options
	echo     *echo.Echo
	patterns map[string]string // by echo's spelling of a route
	calls    sync.Pool         // of *call, to be used again
	drain    time.Duration
	ending   atomic.Bool
	linger   func()
}

// New makes a Server.
func New(o Options) *Server {
	if o.Ready == nil {
		o.Ready = func() []Part { return nil }
	}
	if o.Metrics == nil {
		o.Metrics = http.NotFoundHandler()
	}
	if o.Observe == nil {
		o.Observe = func(string, string, int, time.Duration) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = sendgate.SystemClock
	}
	s := &Server{o: o, drain: drainLimit, linger: func() { time.Sleep(o.Linger) }}
	s.route()
	return s
}

// ServeHTTP answers one request. It is routed by its path as it was sent: once
// decoded, the slash within an id looks like one between segments.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawPath == "" {
		if sent := r.URL.EscapedPath(); sent != r.URL.Path {
			own, target := *r, *r.URL
			target.RawPath = sent
			own.URL = &target
			r = &own
		}
	}
	s.echo.ServeHTTP(w, r)
}

// Serve answers requests on a listener until the context ends. Then it says that
// it is not ready, and lingers; accepts no more, gives those in flight a bounded
// time to finish, and returns nil. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	// What is in flight outlives ctx, up to the end of the drain.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return life },
		ReadHeaderTimeout: headerLimit,
		ReadTimeout:       readLimit,
		WriteTimeout:      writeLimit,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelWarn),
	}
	drained := make(chan struct{})
	running := context.AfterFunc(ctx, func() {
		defer close(drained)
		s.ending.Store(true)
		s.linger()
		limited, cancel := context.WithTimeout(life, s.drain)
		defer cancel()
		if err := server.Shutdown(limited); err != nil {
			end()
			_ = server.Close()
			s.o.Log.Warn("requests in flight were cut off at the end of the drain")
		}
	})
	err := server.Serve(l)
	if running() {
		return errors.Join(err, server.Close())
	}
	<-drained
	return nil
}
