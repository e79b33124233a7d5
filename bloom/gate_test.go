package bloom_test

import (
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/metrics"
)

// memoryGate is a gate that knows what the overlay and the filter know and
// nothing else, with the metrics of a real one: `changed` has opted out, and is
// in the overlay; `gone` has a hold there; u_0 to u_999 are in the filter.
func memoryGate(t testing.TB) *sendgate.Gate {
	t.Helper()
	overlay := bloom.NewOverlay(10_000)
	overlay.SetLive(true)
	overlay.Apply(sendgate.Consent{User: "changed", Revision: 1_000_007, Settings: sendgate.Settings{promotions: false}}, sendgate.Place{})
	overlay.Apply(sendgate.Consent{User: "gone", Revision: 1_000_008, Global: true}, sendgate.Place{})
	snapshot, err := load(t, build(t, plan(), numbered(0, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	live := bloom.NewLive(overlay, bloom.NewSampler(0.01, overlay, nil).Offer)
	bloom.Use(live, snapshot)
	return sendgate.NewGate(sendgate.Options{Catalog: catalogfile.Sample(), Overlay: overlay, Filter: live, Observer: metrics.New()})
}

// inMemory are checks that are answered in process.
var inMemory = []struct {
	name   string
	check  sendgate.Check
	reason sendgate.Reason
	step   sendgate.Step
}{
	{"opt-out in the overlay", about("changed", "promotions"), sendgate.ReasonOptedOut, sendgate.StepFilter},
	{"hold in the overlay", about("gone", "promotions"), sendgate.ReasonGlobalUnsubscribe, sendgate.StepGlobal},
	{"opt-out in the filter", about("u_7", "promotions"), sendgate.ReasonOptedOut, sendgate.StepFilter},
	{"essential", about("u_7", "security_alerts"), sendgate.ReasonEssential, sendgate.StepGlobal},
}

func about(user sendgate.UserID, topic string) sendgate.Check {
	return sendgate.Check{NotificationID: "n_1", User: user, Topic: topic, Channel: "push", CampaignID: "c7"}
}

// BenchmarkDecide measures checks that are answered in process.
func BenchmarkDecide(b *testing.B) {
	gate := memoryGate(b)
	for _, c := range inMemory {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := gate.Decide(b.Context(), c.check); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
