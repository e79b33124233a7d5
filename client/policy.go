package client

import (
	"context"
	"time"

	"github.com/sendgate/sendgate"
)

// unverifiableRetry is how long after a decision without a catalog it is worth
// asking again. With one, the root package says so.
const unverifiableRetry = 5 * time.Second

// policy decides where no gate can be asked: by a gate of its own that reaches
// nothing, so that a category's policy means here what it means there.
type policy struct {
	gate *sendgate.Gate
	now  func() time.Time
}

func newPolicy(catalog *sendgate.Catalog, now func() time.Time) *policy {
	return &policy{now: now, gate: sendgate.NewGate(sendgate.Options{
		Catalog: catalog, Overlay: nothing{}, Records: nothing{}, Caps: nothing{}, Observer: nothing{}, Now: now,
	})}
}

// decide answers checks, in order, of which as many as take says are allowed if
// it is more than 0. None of them is wrong, unless by its topic or channel: one
// that the catalog does not have may be newer than the catalog.
func (p *policy) decide(ctx context.Context, checks []sendgate.Check, take int, cause error) []Decision {
	decisions := make([]Decision, len(checks))
	results := make([]sendgate.Result, len(checks))
	known := p.gate.Catalog() != nil
	if known {
		results = p.gate.DecideAll(ctx, checks, sendgate.Reserve, take)
	}
	for i := range checks {
		d := &results[i].Decision
		if !known || results[i].Err != nil {
			d = &sendgate.Decision{
				Verdict: sendgate.Suppress, Reason: sendgate.ReasonUnverifiable, Step: sendgate.StepPreference,
				Exact: true, RetryAt: p.now().Add(unverifiableRetry),
			}
		}
		decisions[i] = Decision{
			NotificationID: checks[i].NotificationID, User: checks[i].User, Verdict: d.Verdict, Reason: d.Reason.String(), Step: d.Step.String(),
			Category: d.Category, Exact: d.Exact, Degraded: true, DeliverAt: d.DeliverAt, RetryAt: d.RetryAt,
			ByClient: true, Cause: cause, check: checks[i], now: p.now,
		}
	}
	return decisions
}

// nothing is what a gate without Redis and store knows, keeps and tells.
type nothing struct{}

func (nothing) Consent(sendgate.UserID) (c sendgate.Consent, exact, known bool) {
	return c, false, false
}

func (nothing) Read(_ context.Context, asks []sendgate.RecordAsk) []sendgate.RecordAnswer {
	answers := make([]sendgate.RecordAnswer, len(asks))
	for i := range answers {
		answers[i].Err = ErrUnreachable
	}
	return answers
}

func (nothing) Judge(_ context.Context, asks []sendgate.CapAsk, _ int) []sendgate.CapAnswer {
	answers := make([]sendgate.CapAnswer, len(asks))
	for i := range answers {
		answers[i].Err = ErrUnreachable
	}
	return answers
}

func (nothing) Settle(_ context.Context, reports []sendgate.CapReport) []sendgate.CapReceipt {
	return make([]sendgate.CapReceipt, len(reports))
}

func (nothing) Decided(*sendgate.Check, *sendgate.Decision, sendgate.Mode) {}
func (nothing) Settled(*sendgate.Settlement)                               {}
func (nothing) StepTook(sendgate.Step, int, time.Duration)                 {}
func (nothing) ZoneFellBack()                                              {}
