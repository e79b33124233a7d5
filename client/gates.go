package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/sendgate/sendgate/guard"
)

const (
	// callsAtOnce is how many checks, or lists, and how many reports are under
	// way at one gate.
	callsAtOnce = 64
	// mostRead is how much of an answer is read, in bytes.
	mostRead = 8 << 20

	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// gate is one gate, and how it has fared.
type gate struct {
	url             string
	checks, reports *guard.Guard
}

func checksOf(g *gate) *guard.Guard  { return g.checks }
func reportsOf(g *gate) *guard.Guard { return g.reports }

// gates are all of them.
type gates struct {
	http *http.Client
	all  []*gate
	next atomic.Uint64
}

func newGates(o *Options, hc *http.Client) *gates {
	gs := &gates{http: hc}
	for i, u := range o.URLs {
		watch := func(what string, limit time.Duration) *guard.Guard {
			return guard.New(guard.Options{
				Name: what, Limit: limit, InFlight: callsAtOnce,
				Answered: func(err error) bool { return refusalOf(err) != nil },
				Changed: func(_ string, open bool) {
					o.Log.LogAttrs(context.Background(), levelOf(open), "a gate has changed", slog.Int("gate", i), slog.String("calls", what), slog.Bool("left_alone", open))
				},
			})
		}
		gs.all = append(gs.all, &gate{base(u), watch("checks", o.Timeout), watch("reports", o.ReportTimeout)})
	}
	return gs
}

func levelOf(trouble bool) slog.Level {
	if trouble {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// order lists the gates as they are to be tried: the next one first, but those
// that are left alone last.
func (gs *gates) order(of func(*gate) *guard.Guard) []*gate {
	n := len(gs.all)
	if n == 1 {
		return gs.all
	}
	first := int(gs.next.Add(1) % uint64(n))
	order, alone := make([]*gate, 0, n), make([]*gate, 0, n)
	for i := range n {
		if g := gs.all[(first+i)%n]; of(g).Open() {
			alone = append(alone, g)
		} else {
			order = append(order, g)
		}
	}
	return append(order, alone...)
}

// down tells whether all gates are left alone but for probes.
func (gs *gates) down() bool {
	for _, g := range gs.all {
		if !g.checks.Open() {
			return false
		}
	}
	return true
}

// try makes one attempt, and another one if the first cannot have sent anything.
func (gs *gates) try(ctx context.Context, limit time.Duration, of func(*gate) *guard.Guard, call func(context.Context, *gate) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var failed error
	for _, g := range gs.order(of) {
		err := of(g).Within(ctx, limit, func(ctx context.Context) error { return call(ctx, g) })
		switch {
		case errors.Is(err, gobreaker.ErrOpenState):
		case failed == nil && sentNothing(err) && ctx.Err() == nil:
			failed = err
		default:
			return err
		}
	}
	if failed == nil {
		failed = gobreaker.ErrOpenState
	}
	return failed
}

// sentNothing tells whether no connection was made.
func sentNothing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// exchange sends a request and returns the body of an answer of 200. The error
// is a refusal, ErrFailing, ErrGarbled, or what the network says.
func (gs *gates) exchange(ctx context.Context, method, target string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", jsonType)
	}
	response, err := gs.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var read bytes.Buffer
	if n := response.ContentLength; n > 0 && n <= mostRead {
		read.Grow(int(n) + bytes.MinRead)
	}
	switch n, err := read.ReadFrom(io.LimitReader(response.Body, mostRead+1)); {
	case err != nil:
		return nil, err
	case n > mostRead:
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrGarbled, mostRead)
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch status := response.StatusCode; {
	case status == http.StatusOK && kind == jsonType:
		return read.Bytes(), nil
	case status == http.StatusOK:
		return nil, fmt.Errorf("%w: it is no JSON", ErrGarbled)
	case status >= 400 && status < 500 && kind == problemType:
		if refusal := parseProblem(read.Bytes()); refusal != nil {
			return nil, refusal
		}
		fallthrough
	default:
		return nil, fmt.Errorf("%w: status %d", ErrFailing, status)
	}
}
