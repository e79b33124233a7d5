package bloom_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
)

// archivist has the records of some users, and cannot read others.
type archivist map[sendgate.UserID]*sendgate.Preferences

func (a archivist) Read(_ context.Context, asks []sendgate.RecordAsk) []sendgate.RecordAnswer {
	p, there := a[asks[0].User]
	if !there {
		return []sendgate.RecordAnswer{{Err: errors.New("down")}}
	}
	return []sendgate.RecordAnswer{{Preferences: p}}
}

func TestTheSampler(t *testing.T) {
	records := archivist{
		"out":     {Settings: sendgate.Settings{promotions: false}},
		"held":    {Holds: []sendgate.Hold{{Source: sendgate.SourceUser}}},
		"in":      {Settings: sendgate.Settings{promotions: true}},
		"unset":   {},
		"changed": {},
	}
	synctest.Test(t, func(t *testing.T) {
		overlay := bloom.NewOverlay(100)
		overlay.Apply(consent("changed", 2), sendgate.Place{})
		var mu sync.Mutex
		results := map[string]int{}
		s := bloom.NewSampler(1, overlay, func(r bloom.SampleResult) {
			mu.Lock()
			defer mu.Unlock()
			results[r.String()]++
		})
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx, records)
		for _, user := range []sendgate.UserID{"out", "held", "in", "unset", "changed", "unknown"} {
			s.Offer(user, promotions)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if results["confirmed"] != 2 || results["false_positive"] != 2 || results["failed"] != 1 {
			t.Errorf("%v", results)
		}
		for range 100_000 { // nobody takes them: nobody waits
			s.Offer("out", promotions)
		}
	})
	none := bloom.NewSampler(0, bloom.NewOverlay(1), func(bloom.SampleResult) { t.Error("something was sampled") })
	ctx, cancel := context.WithCancel(t.Context())
	for range 10_000 {
		none.Offer("out", promotions)
	}
	cancel()
	none.Run(ctx, records)
}
