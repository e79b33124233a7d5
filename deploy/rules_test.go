package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// job is the gates' in prometheus.yml.
const job = "sendgate"

// Rules are evaluated for longer than any of them waits before it is looked at
// which fire. Steps of a minute would find the same, in five times the time.
const (
	evaluated = 25 * time.Minute
	step      = 5 * time.Minute
)

// healthy is what two gates say that have nothing to complain of, by series:
// a value for each minute, as promtool's tests write them.
var healthy = map[string]string{
	`up{instance="a"}`:                                                                                  "1x120",
	`up{instance="b"}`:                                                                                  "1x120",
	`sendgate_filter_generation{instance="a"}`:                                                          "7x120",
	`sendgate_filter_generation{instance="b"}`:                                                          "7x120",
	`sendgate_filter_age_seconds{instance="a"}`:                                                         "600x120",
	`sendgate_filter_age_seconds{instance="b"}`:                                                         "900x120",
	`sendgate_filter_verifying{instance="a"}`:                                                           "0x120",
	`sendgate_filter_loads_total{instance="a",result="loaded"}`:                                         "1+1x120",
	`sendgate_filter_rejects_verified_total{instance="a",outcome="confirmed"}`:                          "0+60x120",
	`sendgate_decisions_total{instance="a",step="filter",verdict="suppress",degraded="false"}`:          "0+6000x120",
	`sendgate_decisions_total{instance="a",step="caps",verdict="allow",degraded="false"}`:               "0+60000x120",
	`sendgate_overlay_dropped{instance="a"}`:                                                            "0x120",
	`sendgate_value_limits_age_seconds{instance="a"}`:                                                   "1x120",
	`sendgate_decision_log_dropped_total{instance="a"}`:                                                 "0x120",
	`sendgate_decision_log_failed_total{instance="a"}`:                                                  "0x120",
	`sendgate_caps_may_be_evicted{instance="a"}`:                                                        "0x120",
	`sendgate_pending_oldest_seconds{instance="a"}`:                                                     "31x120",
	`sendgate_propagation_seconds_bucket{instance="a",le="0.005"}`:                                      "0+99x120",
	`sendgate_propagation_seconds_bucket{instance="a",le="5"}`:                                          "0+100x120",
	`sendgate_propagation_seconds_bucket{instance="a",le="10"}`:                                         "0+100x120",
	`sendgate_propagation_seconds_bucket{instance="a",le="+Inf"}`:                                       "0+100x120",
	`sendgate_propagation_seconds_count{instance="a"}`:                                                  "0+100x120",
	`sendgate_breaker_open{instance="a",dependency="redis"}`:                                            "0x120",
	`sendgate_catalog_reloads_total{instance="a",result="ok"}`:                                          "0+1x120",
	`sendgate_http_request_seconds_count{instance="a",route="/v1/check",status="200"}`:                  "0+60000x120",
	`sendgate_http_request_seconds_count{instance="a",route="/v1/users/{id}/preferences",status="200"}`: "0+60x120",
}

// cases change what a gate says, and name the alerts that fire an hour and a
// half in. `_` is a minute without the series.
var cases = []struct {
	name    string
	changed map[string]string
	fires   []string
}{
	{"all is well", nil, nil},
	{"one gate is down", map[string]string{`up{instance="b"}`: "1x80 0x40"}, []string{"SendgateGateDown"}},
	{"a gate is started again", map[string]string{`up{instance="b"}`: "1x88 0 1x40"}, nil},
	{"all gates are down", map[string]string{`up{instance="a"}`: "0x120", `up{instance="b"}`: "0x120"}, []string{"SendgateGateDown", "SendgateNoGate"}},
	{"no gate is known", map[string]string{`up{instance="a"}`: "_x120", `up{instance="b"}`: "_x120"}, []string{"SendgateNoGate"}},

	{"no filter was ever built", map[string]string{
		`sendgate_filter_generation{instance="a"}`: "0x120", `sendgate_filter_generation{instance="b"}`: "0x120",
		`sendgate_filter_age_seconds{instance="a"}`: "0x120", `sendgate_filter_age_seconds{instance="b"}`: "0x120",
		`sendgate_filter_verifying{instance="a"}`: "1x120",
	}, []string{"SendgateNoFilter"}},
	{"a gate has just started", map[string]string{`sendgate_filter_generation{instance="b"}`: "_x80 0x5 7x40"}, nil},
	{"the builder is dead", map[string]string{
		`sendgate_filter_age_seconds{instance="a"}`: "0+60x120", `sendgate_filter_age_seconds{instance="b"}`: "0+60x120",
	}, []string{"SendgateBuilderSilent", "SendgateFilterOld"}},
	{"the builder is dead for less than an hour", map[string]string{
		`sendgate_filter_age_seconds{instance="a"}`: "0x35 0+60x90", `sendgate_filter_age_seconds{instance="b"}`: "0x35 0+60x90",
	}, []string{"SendgateBuilderSilent"}},
	{"one gate keeps its filter", map[string]string{`sendgate_filter_age_seconds{instance="b"}`: "0+60x120"}, []string{"SendgateFilterOld"}},
	{"one gate has none, the other an old one", map[string]string{
		`sendgate_filter_generation{instance="a"}`: "0x120", `sendgate_filter_age_seconds{instance="a"}`: "0x120",
		`sendgate_filter_age_seconds{instance="b"}`: "0+60x120",
	}, []string{"SendgateBuilderSilent", "SendgateFilterOld", "SendgateNoFilter"}},
	{"a filter is refused, the first ever", map[string]string{`sendgate_filter_loads_total{instance="a",result="refused"}`: "_x80 1x40"}, []string{"SendgateFilterRefused"}},
	{"a filter is refused, once more", map[string]string{`sendgate_filter_loads_total{instance="a",result="refused"}`: "1x80 2x40"}, []string{"SendgateFilterRefused"}},
	{"a filter was refused long ago", map[string]string{`sendgate_filter_loads_total{instance="a",result="refused"}`: "_x5 1x120"}, nil},
	{"no filter can be fetched", map[string]string{`sendgate_filter_loads_total{instance="a",result="failed"}`: "_x60 1+6x60"}, []string{"SendgateFilterUnreadable"}},
	{"one fetch fails", map[string]string{`sendgate_filter_loads_total{instance="a",result="failed"}`: "0x85 1x40"}, nil},
	{"a gap does not end", map[string]string{`sendgate_filter_verifying{instance="a"}`: "0x60 1x60"}, []string{"SendgateVerifying"}},
	{"a gap waits for the next filter", map[string]string{`sendgate_filter_verifying{instance="a"}`: "0x72 1x40"}, nil},
	{"the filter is too small", map[string]string{
		`sendgate_filter_rejects_verified_total{instance="a",outcome="false_positive"}`: "0+3x120", // 3 of 63, of 6,000, beside 60,000
	}, []string{"SendgateFalsePositives"}},
	{"most rejections are false, of very few", map[string]string{
		`sendgate_filter_rejects_verified_total{instance="a",outcome="confirmed"}`:                 "0x120",
		`sendgate_filter_rejects_verified_total{instance="a",outcome="false_positive"}`:            "0+1x120",
		`sendgate_decisions_total{instance="a",step="filter",verdict="suppress",degraded="false"}`: "0+30x120", // of 60,000
	}, nil},
	{"false positives are too few to tell", map[string]string{
		`sendgate_filter_rejects_verified_total{instance="a",outcome="confirmed"}`:      "0x120",
		`sendgate_filter_rejects_verified_total{instance="a",outcome="false_positive"}`: "0x30 0+1x5 5x100",
	}, nil},

	{"caps may be evicted", map[string]string{`sendgate_caps_may_be_evicted{instance="a"}`: "0x60 1x60"}, []string{"SendgateCapsMayBeEvicted"}},
	{"caps might have been evicted for a while", map[string]string{`sendgate_caps_may_be_evicted{instance="a"}`: "0x80 1x10 0x40"}, nil},
	{"the overlay is full", map[string]string{`sendgate_overlay_dropped{instance="a"}`: "0x85 0+40x40"}, []string{"SendgateOverlayFull"}},
	{"the overlay was full before", map[string]string{`sendgate_overlay_dropped{instance="a"}`: "0+40x20 800x120"}, nil},
	{"a change is stuck", map[string]string{`sendgate_pending_oldest_seconds{instance="a"}`: "31x80 31+60x40"}, []string{"SendgateChangePending"}},
	{"changes are slow", map[string]string{`sendgate_propagation_seconds_bucket{instance="a",le="5"}`: "0+98x120", `sendgate_propagation_seconds_bucket{instance="a",le="0.005"}`: "0+90x120"}, []string{"SendgatePropagationSlow"}},
	{"the few changes there are are slow", map[string]string{
		`sendgate_propagation_seconds_bucket{instance="a",le="5"}`: "0x120", `sendgate_propagation_seconds_bucket{instance="a",le="0.005"}`: "0x120",
		`sendgate_propagation_seconds_bucket{instance="a",le="10"}`: "0+1x120", `sendgate_propagation_seconds_bucket{instance="a",le="+Inf"}`: "0+1x120",
		`sendgate_propagation_seconds_count{instance="a"}`: "0+1x120",
	}, nil},

	{"Redis is down", map[string]string{`sendgate_breaker_open{instance="a",dependency="redis"}`: "0x80 1x40"}, []string{"SendgateBreakerOpen"}},
	{"limits of single values cannot be read", map[string]string{`sendgate_value_limits_age_seconds{instance="a"}`: "1x80 1+60x40"}, []string{"SendgateValueLimitsOld"}},
	{"the decision log's disk is slow", map[string]string{`sendgate_decision_log_dropped_total{instance="a"}`: "0x80 0+50x40"}, []string{"SendgateDecisionLogIncomplete"}},
	{"the decision log's disk is full", map[string]string{`sendgate_decision_log_failed_total{instance="a"}`: "0x85 1x40"}, []string{"SendgateDecisionLogIncomplete"}},
	{"the decision log lost entries before", map[string]string{`sendgate_decision_log_failed_total{instance="a"}`: "0x20 900x120"}, nil},
	{"Redis is down, and its breaker is new", map[string]string{`sendgate_breaker_open{instance="a",dependency="redis"}`: "_x80 1x40"}, []string{"SendgateBreakerOpen"}},
	{"a breaker opens for a moment", map[string]string{`sendgate_breaker_open{instance="a",dependency="redis"}`: "0x89 1 0x40"}, nil},
	{"many decisions are degraded", map[string]string{`sendgate_decisions_total{instance="a",step="preference",verdict="suppress",degraded="true"}`: "_x60 0+2000x60"}, []string{"SendgateDegraded"}},
	{"few decisions are degraded", map[string]string{`sendgate_decisions_total{instance="a",step="preference",verdict="suppress",degraded="true"}`: "0+200x120"}, nil},
	{"an unverified allow, the first ever", map[string]string{`sendgate_unverified_allows_total{instance="a",category="transactional"}`: "_x85 1x40"}, []string{"SendgateUnverifiedAllows"}},
	{"unverified allows", map[string]string{`sendgate_unverified_allows_total{instance="a",category="transactional"}`: "5x80 6+1x40"}, []string{"SendgateUnverifiedAllows"}},
	{"unverified allows of yesterday", map[string]string{`sendgate_unverified_allows_total{instance="a",category="transactional"}`: "5x120"}, nil},
	{"a catalog is refused, the first ever", map[string]string{`sendgate_catalog_reloads_total{instance="a",result="refused"}`: "_x60 1x60"}, []string{"SendgateCatalogRefused"}},
	{"edits fail, among very many checks", map[string]string{
		`sendgate_http_request_seconds_count{instance="a",route="/v1/users/{id}/preferences",status="503"}`: "_x60 0+6x60",
	}, []string{"SendgateServerErrors"}},
	{"one edit fails", map[string]string{`sendgate_http_request_seconds_count{instance="a",route="/v1/users/{id}/preferences",status="503"}`: "0x88 1x40"}, nil},
	{"a gate is not ready yet", map[string]string{`sendgate_http_request_seconds_count{instance="a",route="/readyz",status="503"}`: "0+60x120"}, nil},
}

// TestAlerts runs every case through Prometheus' own rule engine.
func TestAlerts(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			series := maps.Clone(healthy)
			maps.Copy(series, c.changed)
			if fired := firing(t, series, 90*time.Minute); !slices.Equal(fired, c.fires) {
				t.Errorf("fires %v, want %v", fired, c.fires)
			}
		})
		for _, name := range c.fires {
			tried[name] = true
		}
	}
	for _, r := range alerts(t) {
		if !tried[r.Alert] {
			t.Errorf("no case makes %s fire", r.Alert)
		}
	}
}

// firing names the alerts that fire after a while of series like these.
func firing(t *testing.T, series map[string]string, after time.Duration) (names []string) {
	t.Helper()
	var load strings.Builder
	load.WriteString("load 1m\n")
	for _, selector := range slices.Sorted(maps.Keys(series)) {
		name, rest, _ := strings.Cut(selector, "{")
		fmt.Fprintf(&load, "  %s{job=%q,%s %s\n", name, job, rest, series[selector])
	}
	storage := promqltest.LoadedStorage(t, load.String())
	engine := promqltest.NewTestEngine(t, false, 0, 1_000_000)
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, storage), AppendableV2: storage, Queryable: storage, Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(), Parser: newParser(),
	})
	groups, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, "alerts.yml")
	if errs != nil {
		t.Fatal(errs)
	}
	for at := after - evaluated; at <= after; at += step {
		for _, g := range groups {
			g.Eval(t.Context(), time.Unix(0, 0).Add(at))
		}
	}
	for _, g := range groups {
		for _, r := range g.Rules() {
			alert, ok := r.(*rules.AlertingRule)
			if !ok {
				continue
			}
			if err := alert.LastError(); err != nil {
				t.Errorf("%s: %v", alert.Name(), err)
			}
			for _, a := range alert.ActiveAlerts() {
				if a.State != rules.StateFiring {
					continue
				}
				names = append(names, alert.Name())
				for _, annotation := range []string{"summary", "description"} {
					if said := a.Annotations.Get(annotation); strings.Contains(said, "error expanding") || strings.Contains(said, "<no value>") {
						t.Errorf("%s says %q", alert.Name(), said)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
