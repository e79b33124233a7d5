package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sendgate/sendgate"
)

// CheckAll asks about up to MaxList checks in one request of their own. Slots are
// given in the order of the list. If take is more than 0 the checks are of one
// user, and the first so many that may go are allowed. A check that is wrong
// fails alone. The error is of the list as a whole, of the kinds that Check has.
func (c *Client) CheckAll(ctx context.Context, checks []sendgate.Check, take int) ([]Result, error) {
	if err := listFault(checks, take); err != nil {
		return nil, err
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.calls.Done()
	results, items, places := make([]Result, len(checks)), make([]item, 0, len(checks)), make([]int, 0, len(checks))
	size := 0
	for i := range checks {
		body, err := encodeCheck(&checks[i])
		if results[i].Err = err; err != nil {
			c.counts.refused.Add(1)
			continue
		}
		items, places = append(items, item{&checks[i], body}), append(places, i)
		size += len(body) + 1
	}
	if len(items) == 0 {
		return results, nil
	}
	if size > maxListBytes {
		return nil, bodyTooLarge("checks")
	}
	answered, err := c.post(ctx, listLimit(c.o.Timeout, len(items)), items, take)
	refusal := refusalOf(err)
	switch {
	case refusal != nil:
		c.counts.refused.Add(uint64(len(items)))
		return nil, refusal
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case err != nil:
		answered = c.decideItems(ctx, items, take, err)
	default:
		for i := range answered {
			c.counts.answered(answered[i].Err)
		}
	}
	for k, i := range places {
		results[i] = answered[k]
	}
	return results, nil
}

func (c *Client) decideItems(ctx context.Context, items []item, take int, fault error) []Result {
	asked := make([]sendgate.Check, len(items))
	for i := range items {
		asked[i] = *items[i].check
	}
	results := make([]Result, len(items))
	for i, d := range c.decide(ctx, asked, take, fault) {
		results[i].Decision = d
	}
	return results
}

// listFault says why a list cannot be asked about.
func listFault(checks []sendgate.Check, take int) error {
	switch {
	case len(checks) > MaxList:
		return sendgate.Errorf(sendgate.CodeBatchTooLarge, "checks", "has at most %d items", MaxList)
	case take < 0 || take > MaxList:
		return sendgate.Errorf(sendgate.CodeInvalidField, "take", "has to be from 1 to %d, or 0 for all", MaxList)
	}
	for i := range checks {
		if take > 0 && checks[i].User != checks[0].User {
			return sendgate.Errorf(sendgate.CodeInvalidField, "take", "is for the checks of one user, and there are several")
		}
	}
	return nil
}

// bodyTooLarge is said here, since a gate that says so hangs up while it is still
// being written to.
func bodyTooLarge(field string) error {
	return sendgate.Errorf(sendgate.CodeBodyTooLarge, field, "at most %d bytes are read by a gate", maxListBytes)
}

// listLimit is the time limit of a list: gates go through it by the hundred.
func listLimit(of time.Duration, checks int) time.Duration {
	return of * time.Duration((checks+99)/100)
}

// Settlement is what one report led to: a status, such as that of
// sendgate.StatusSettled by its name, or the error that stands in its place.
type Settlement struct {
	Status string
	Err    error // *sendgate.Error. With sendgate.CodeStoreUnavailable the report is to be repeated
}

// Report tells a gate what became of up to MaxList notifications. Repeating a
// report does no harm, and one that did not get through has to be repeated: the
// error is then one of the causes, such as ErrTimeout. It is a refusal where the
// list as a whole is wrong.
func (c *Client) Report(ctx context.Context, outcomes []sendgate.Outcome) ([]Settlement, error) {
	if len(outcomes) > MaxList {
		return nil, sendgate.Errorf(sendgate.CodeBatchTooLarge, "outcomes", "has at most %d items", MaxList)
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.calls.Done()
	results, bodies, places := make([]Settlement, len(outcomes)), make([][]byte, 0, len(outcomes)), make([]int, 0, len(outcomes))
	for i := range outcomes {
		body, err := encodeOutcome(&outcomes[i])
		if results[i].Err = err; err == nil {
			bodies, places = append(bodies, body), append(places, i)
		}
	}
	if len(bodies) == 0 {
		return results, nil
	}
	body := listBody("outcomes", bodies, 0)
	if len(body) > maxListBytes {
		return nil, bodyTooLarge("outcomes")
	}
	settled, err := c.report(ctx, body, len(bodies))
	switch refusal := refusalOf(err); {
	case refusal != nil:
		return nil, refusal
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case err != nil:
		return nil, causeOf(err)
	}
	for k, i := range places {
		results[i] = settled[k]
	}
	return results, nil
}

func (c *Client) report(ctx context.Context, body []byte, outcomes int) (settled []Settlement, err error) {
	err = c.gates.try(ctx, c.o.ReportTimeout, reportsOf, func(ctx context.Context, g *gate) error {
		data, err := c.gates.exchange(ctx, http.MethodPost, g.url+"/v1/outcomes", body)
		if err == nil {
			settled, err = parseSettlements(data, outcomes)
		}
		return err
	})
	return settled, err
}
