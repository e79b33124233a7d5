package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sendgate/sendgate"
)

const (
	// catalogLimit is the time that one request for the catalog has.
	catalogLimit = 5 * time.Second
	// catalogRetry is how long after one that failed the next gate is asked.
	catalogRetry = 5 * time.Second
)

// ParseCatalog reads a catalog as `GET /v1/catalog` answers it. Keep one in a
// file that the program embeds, for Options.Catalog. Members that are not known
// here are passed over: a gate may be newer than the client.
func ParseCatalog(data []byte) (*sendgate.Catalog, error) {
	var spec sendgate.CatalogSpec
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, sendgate.Errorf(sendgate.CodeInvalidCatalog, "", "not a catalog in JSON")
	}
	return sendgate.NewCatalog(spec)
}

// learner keeps the catalog of a gate's policy up to date.
type learner struct {
	gates *gates
	into  *sendgate.Gate
	every time.Duration
	now   func() time.Time
	log   *slog.Logger

	at atomic.Pointer[time.Time] // of the last answer

	turn   chan struct{} // of one request at a time, and what follows
	last   []byte
	next   int
	failed bool
}

func newLearner(o *Options, gs *gates, into *sendgate.Gate) *learner {
	return &learner{gates: gs, into: into, every: o.CatalogEvery, now: o.Now, log: o.Log, turn: make(chan struct{}, 1)}
}

// run asks at once, and then from time to time, until the context ends. Clients
// that were started together drift apart.
func (l *learner) run(ctx context.Context) {
	for {
		wait := l.every
		if err := l.learn(ctx); err != nil {
			wait = min(wait, catalogRetry)
		}
		wait += time.Duration((rand.Float64() - 0.5) / 5 * float64(wait))
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// learn asks the next gate for its catalog. One with a fault is refused, and the
// catalog in force stays.
func (l *learner) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catalogLimit)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	g := l.gates.all[l.next%len(l.gates.all)]
	l.next++
	data, err := l.gates.exchange(ctx, http.MethodGet, g.url+"/v1/catalog", nil)
	if err == nil && !bytes.Equal(data, l.last) {
		err = l.adopt(data)
	}
	if failed := err != nil; failed != l.failed && !errors.Is(err, context.Canceled) {
		l.failed = failed
		l.log.LogAttrs(ctx, levelOf(failed), "a gate was asked for its catalog", slog.Bool("failed", failed), slog.Any("error", err))
	}
	if err == nil {
		now := l.now()
		l.at.Store(&now)
	}
	return err
}

func (l *learner) adopt(data []byte) error {
	catalog, err := ParseCatalog(data)
	if err == nil {
		l.into.SetCatalog(catalog)
		l.last = data
	}
	return err
}

// Refresh asks a gate for its catalog now, as happens by itself at the start and
// every Options.CatalogEvery. The catalog in force stays if that fails.
func (c *Client) Refresh(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.calls.Done()
	return c.catalog.learn(ctx)
}

// Catalog is the catalog by which the client decides where no gate can be asked;
// nil if it has none yet.
func (c *Client) Catalog() *sendgate.Catalog { return c.policy.gate.Catalog() }
