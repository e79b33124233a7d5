package bloom

import (
	"context"
	"math/rand/v2"

	"github.com/sendgate/sendgate"
)

// Sampler verifies some of the checks that were rejected because of a hit, in
// the background, so that the true false-positive rate is known. Its Offer is
// what a Live takes for rejected.
type Sampler struct {
	rate    float64
	overlay *Overlay
	observe func(SampleResult)
	queue   chan rejection
}

type rejection struct {
	user    sendgate.UserID
	setting sendgate.Setting
}

// SampleResult says what came of the verification of a rejection.
type SampleResult uint8

// The results.
const (
	Confirmed     SampleResult = iota // the user has opted out
	FalsePositive                     // the user has not
	SampleFailed                      // the record could not be read
	sampleResultCount
)

// String is the result's name in metrics.
func (r SampleResult) String() string {
	return [sampleResultCount]string{"confirmed", "false_positive", "failed"}[r]
}

// mostWaiting is how many rejections wait to be verified; what comes beyond is
// not.
const mostWaiting = 1024

// NewSampler makes a Sampler of a share of the rejections, from 0 to 1. observe
// is told of every one that was verified.
func NewSampler(rate float64, overlay *Overlay, observe func(SampleResult)) *Sampler {
	return &Sampler{rate: rate, overlay: overlay, observe: observe, queue: make(chan rejection, mostWaiting)}
}

// Offer takes a rejection, or not, and never waits.
func (s *Sampler) Offer(user sendgate.UserID, setting sendgate.Setting) {
	if s.rate < 1 && rand.Float64() >= s.rate {
		return
	}
	select {
	case s.queue <- rejection{user, setting}:
	default:
	}
}

// Run verifies until the context ends.
func (s *Sampler) Run(ctx context.Context, records sendgate.Records) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-s.queue:
			s.verify(ctx, records, r)
		}
	}
}

func (s *Sampler) verify(ctx context.Context, records sendgate.Records, r rejection) {
	a := records.Read(ctx, []sendgate.RecordAsk{{User: r.user}})[0]
	if _, _, changed := s.overlay.Consent(r.user); changed {
		return // since; the record says nothing of the snapshot
	}
	switch {
	case a.Preferences == nil:
		s.observe(SampleFailed)
	case a.Preferences.Global() || isOff(a.Preferences.Settings, r.setting):
		s.observe(Confirmed)
	default:
		s.observe(FalsePositive)
	}
}

func isOff(settings sendgate.Settings, s sendgate.Setting) bool {
	on, set := settings[s]
	return set && !on
}
