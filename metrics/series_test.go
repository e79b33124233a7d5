package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/metrics"
)

// Series that are kept count what series found by their labels would.
func TestSeriesThatAreKept(t *testing.T) {
	m := metrics.New()
	decisions := []sendgate.Decision{
		{Step: sendgate.StepFilter, Verdict: sendgate.Suppress, Reason: sendgate.ReasonOptedOut},
		{Step: sendgate.StepCaps, Verdict: sendgate.Suppress, Reason: sendgate.ReasonNotTaken},
		{Step: sendgate.StepCaps, Verdict: sendgate.Defer, Reason: sendgate.ReasonFrequencyCap, Degraded: true},
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for i := range decisions {
				m.Decided(nil, &decisions[i], sendgate.Reserve)
				m.Requested("/v1/check", "POST", 200+i, time.Millisecond)
			}
		})
	}
	all.Wait()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	got := w.Body.String()
	for _, line := range []string{
		`sendgate_decisions_total{degraded="false",reason="opted_out",step="filter",verdict="suppress"} 10`,
		`sendgate_decisions_total{degraded="false",reason="not_taken",step="caps",verdict="suppress"} 10`,
		`sendgate_decisions_total{degraded="true",reason="frequency_cap",step="caps",verdict="defer"} 10`,
		`sendgate_http_request_seconds_count{method="POST",route="/v1/check",status="200"} 10`,
		`sendgate_http_request_seconds_count{method="POST",route="/v1/check",status="202"} 10`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	if n := strings.Count(got, "sendgate_decisions_total{"); n != len(decisions) {
		t.Errorf("%d series of decisions, want %d", n, len(decisions))
	}
}
