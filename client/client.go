package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sendgate/sendgate"
)

// MaxList is how many checks CheckAll, and how many outcomes Report takes.
const MaxList = maxItems

// Client asks gates. It is safe for concurrent use.
type Client struct {
	o       Options
	gates   *gates
	line    *line
	policy  *policy
	catalog *learner
	counts  counts
	alone   atomic.Int64 // checks under way that are not collected
	own     bool         // the connections are

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
	stop   context.CancelFunc
	ended  sync.WaitGroup // of what runs in the background
}

// New makes a Client, which Close ends. It waits for no gate, and does not fail
// because none is there.
func New(o Options) (*Client, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	hc, own := o.httpClient()
	c := &Client{o: o, gates: newGates(&o, hc), policy: newPolicy(o.Catalog, o.Now), own: own}
	c.line = &line{send: c.askGate, down: c.gates.down, requests: o.Requests, size: o.Batch, bound: o.Waiting}
	c.catalog = newLearner(&o, c.gates, c.policy.gate)
	background, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.ended.Go(func() { c.catalog.run(background) })
	return c, nil
}

// Close refuses further calls, waits for those under way, which have their time
// limits, and ends what runs in the background.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.calls.Wait()
	c.line.wait()
	c.ended.Wait()
	if c.own {
		c.gates.http.CloseIdleConnections()
	}
}

// begin notes a call, which calls.Done ends.
func (c *Client) begin(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.calls.Add(1)
	return nil
}

// Check asks whether one notification may be sent now. The error is a refusal
// (*sendgate.Error or sendgate.Errors: the check is wrong), context.Canceled, or
// ErrClosed; there is no decision then. Where no gate has answered within the
// time limit, or by the deadline of the context, the client decides.
func (c *Client) Check(ctx context.Context, check sendgate.Check) (Decision, error) {
	body, err := encodeCheck(&check)
	if err != nil {
		c.counts.refused.Add(1)
		return Decision{}, err
	}
	if err := c.begin(ctx); err != nil {
		return Decision{}, err
	}
	defer c.calls.Done()
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	a := c.ask(limited, item{&check, body})
	switch {
	case a.fault == nil:
		c.counts.answered(a.Err)
		return a.Decision, a.Err
	case errors.Is(ctx.Err(), context.Canceled):
		return Decision{}, ctx.Err()
	}
	return c.decide(ctx, []sendgate.Check{check}, 0, a.fault)[0], nil
}

// ask has one check answered, with others or alone.
func (c *Client) ask(ctx context.Context, i item) answer {
	if err := ctx.Err(); err != nil { // it is not to be sent at all
		return answer{fault: err}
	}
	if c.o.Batch > 1 {
		return c.line.ask(ctx, i)
	}
	defer c.alone.Add(-1)
	if c.alone.Add(1) > int64(c.o.Waiting) {
		return answer{fault: ErrBusy}
	}
	return c.askGate(ctx, []item{i})[0]
}

// askGate sends one request, of one check or several.
func (c *Client) askGate(ctx context.Context, items []item) []answer {
	results, err := c.post(ctx, c.o.Timeout, items, 0)
	answers := make([]answer, len(items))
	refusal := refusalOf(err) // of the request as a whole
	for i := range answers {
		switch {
		case refusal != nil:
			answers[i].Err = refusal
		case err != nil:
			answers[i].fault = err
		default:
			answers[i].Result = results[i]
		}
	}
	return answers
}

// post asks the next gate.
func (c *Client) post(ctx context.Context, limit time.Duration, items []item, take int) (results []Result, err error) {
	path, body, single := "/v1/check", items[0].body, len(items) == 1 && take == 0
	checks, bodies := make([]*sendgate.Check, len(items)), make([][]byte, len(items))
	for i := range items {
		checks[i], bodies[i] = items[i].check, items[i].body
	}
	if !single {
		path, body = "/v1/check/batch", listBody("checks", bodies, take)
	}
	err = c.gates.try(ctx, limit, checksOf, func(ctx context.Context, g *gate) error {
		c.counts.requests.Add(1)
		data, err := c.gates.exchange(ctx, http.MethodPost, g.url+path, body)
		switch {
		case err != nil:
			return err
		case single:
			results = make([]Result, 1)
			results[0], err = parseDecision(data, checks[0])
		default:
			results, err = parseDecisions(data, checks)
		}
		return err
	})
	for i := range results {
		results[i].Decision.now = c.o.Now
	}
	return results, err
}

// decide answers checks by the client's own means, and says so.
func (c *Client) decide(ctx context.Context, checks []sendgate.Check, take int, fault error) []Decision {
	decisions := c.policy.decide(ctx, checks, take, causeOf(fault))
	for i := range decisions {
		c.counts.decided(&decisions[i])
		c.o.Own(decisions[i])
	}
	return decisions
}
