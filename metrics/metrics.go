// Package metrics owns what Sendgate tells Prometheus: the names, labels and
// buckets of every metric. It implements sendgate.Observer. No label carries
// an id of a user or of a notification.
package metrics

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sendgate/sendgate"
)

// Metrics is every metric of one process. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	decisions   *decisionCounters
	unverified  *prometheus.CounterVec
	uncapped    *prometheus.CounterVec
	outcomes    *prometheus.CounterVec
	overshoot   prometheus.Counter
	steps       [sendgate.StepCaps + 1]prometheus.Observer
	zones       prometheus.Counter
	cache       *prometheus.CounterVec
	propagation prometheus.Histogram
	pendingAge  prometheus.Gauge
	pending     prometheus.Gauge
	breakers    *prometheus.GaugeVec
	reloads     *prometheus.CounterVec
	requests    *requestTimes
	inProcess   prometheus.Counter
	rejects     *prometheus.CounterVec
	loads       *prometheus.CounterVec
}

// fast are the buckets of what takes from microseconds to a second.
var fast = []float64{
	.000_005, .000_01, .000_025, .000_05, .000_1, .000_25, .000_5,
	.001, .002_5, .005, .01, .025, .05, .1, .25, .5, 1,
}

// New makes the metrics of a process, those of the Go runtime included.
func New() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := promauto.With(registry)
	m := &Metrics{
		registry:  registry,
		decisions: newDecisionCounters(f),
		uncapped: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sendgate_uncapped_allows_total",
			Help: "Notifications allowed without having been judged by a cap, by category and cap (`campaign_id/24h`).",
		}, []string{"category", "cap"}),
		outcomes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sendgate_outcomes_total",
			Help: "Reports of what became of notifications, by outcome and by what they led to.",
		}, []string{"outcome", "status"}),
		overshoot: f.NewCounter(prometheus.CounterOpts{
			Name: "sendgate_cap_overshoot_total",
			Help: "Deliveries that were counted under a cap that was full already: reported late, or without having been asked for.",
		}),
		unverified: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sendgate_unverified_allows_total",
			Help: "Notifications allowed without full knowledge, by category.",
		}, []string{"category"}),
		zones: f.NewCounter(prometheus.CounterOpts{
			Name: "sendgate_timezone_fallbacks_total",
			Help: "Checks of users whose stored time zone is not known, where the catalog's default was used.",
		}),
		cache: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sendgate_record_cache_total",
			Help: "Looks into the record cache: hit, miss, stale (older than this gate knows of) or down; and what was remembered of it in place of a look: held or refuted.",
		}, []string{"outcome"}),
		propagation: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "sendgate_propagation_seconds",
			Help:    "From the announcement of a change until this gate obeyed it.",
			Buckets: []float64{.000_5, .001, .002_5, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		pendingAge: f.NewGauge(prometheus.GaugeOpts{
			Name: "sendgate_pending_oldest_seconds",
			Help: "How long the oldest pending change has been so, as of the last sweep. Changes stay pending for 30 s at the least.",
		}),
		pending: f.NewGauge(prometheus.GaugeOpts{
			Name: "sendgate_pending_records",
			Help: "Users who have pending changes, as of the last sweep.",
		}),
		breakers: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sendgate_breaker_open",
			Help: "1 while a dependency is not asked because it failed repeatedly.",
		}, []string{"dependency"}),
		reloads: f.NewCounterVec(prometheus.CounterOpts{
			Name: "sendgate_catalog_reloads_total",
			Help: "Reloads of the catalog, by result: ok or refused.",
		}, []string{"result"}),
		requests: newRequestTimes(f),
	}
	m.filter(f)
	steps := f.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sendgate_step_seconds",
		Help:    "What a step took, for all checks of a request together.",
		Buckets: fast,
	}, []string{"step"})
	for _, s := range sendgate.Steps() {
		m.steps[s] = steps.WithLabelValues(s.String())
	}
	return m
}

// filter makes the metrics of the filter and of what it saves.
func (m *Metrics) filter(f promauto.Factory) {
	m.inProcess = f.NewCounter(prometheus.CounterOpts{
		Name: "sendgate_checks_in_process_total",
		Help: "Decisions that were made without asking Redis or the store.",
	})
	m.rejects = f.NewCounterVec(prometheus.CounterOpts{
		Name: "sendgate_filter_rejects_verified_total",
		Help: "Rejections by the filter that were verified in the background: confirmed, false_positive, or failed.",
	}, []string{"outcome"})
	m.loads = f.NewCounterVec(prometheus.CounterOpts{
		Name: "sendgate_filter_loads_total",
		Help: "Published filters, by what came of them: loaded, refused, or failed (to be fetched).",
	}, []string{"result"})
	// Born with zero, so that the first one shows as an increase.
	for _, result := range []string{"loaded", "refused", "failed"} {
		m.loads.WithLabelValues(result)
	}
	for _, result := range []string{"ok", "refused"} {
		m.reloads.WithLabelValues(result)
	}
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Decided counts a decision.
func (m *Metrics) Decided(_ *sendgate.Check, d *sendgate.Decision, _ sendgate.Mode) {
	m.decisions.of(d).Inc()
	if d.InProcess {
		m.inProcess.Inc()
	}
	if d.Degraded && d.Verdict == sendgate.Allow {
		m.unverified.WithLabelValues(d.Category).Inc()
	}
	for i := range d.Uncapped {
		m.uncapped.WithLabelValues(d.Category, nameOf(&d.Uncapped[i].Cap)).Inc()
	}
}

// nameOf names a cap for people who look for it in the catalog, such as
// `category,channel/24h` or `household_id:all/7d`.
func nameOf(c *sendgate.Cap) string {
	fields := make([]string, len(c.By))
	for i, f := range c.By {
		fields[i] = string(f)
	}
	name := cmp.Or(strings.Join(fields, ","), "all")
	if c.Subject != "" {
		name = string(c.Subject) + ":" + name
	}
	return name + "/" + c.Span()
}

// Settled counts a report of what became of a notification.
func (m *Metrics) Settled(s *sendgate.Settlement) {
	m.outcomes.WithLabelValues(s.Outcome.Fate.String(), s.Status.String()).Inc()
	m.overshoot.Add(float64(s.Over))
}

// StepTook records how long a step took.
func (m *Metrics) StepTook(step sendgate.Step, _ int, took time.Duration) {
	m.steps[step].Observe(took.Seconds())
}

// ZoneFellBack counts the use of the catalog's default time zone in place of
// one that is not known.
func (m *Metrics) ZoneFellBack() { m.zones.Inc() }

// CacheLooked counts a look into the record cache.
func (m *Metrics) CacheLooked(outcome string) { m.cache.WithLabelValues(outcome).Inc() }

// Propagated records how long a change took to get here.
func (m *Metrics) Propagated(lag time.Duration) { m.propagation.Observe(lag.Seconds()) }

// Pending records how long the oldest pending change has been so, and of how
// many users there are any.
func (m *Metrics) Pending(oldest time.Duration, users int) {
	m.pendingAge.Set(oldest.Seconds())
	m.pending.Set(float64(users))
}

// BreakerChanged records that a dependency's breaker opened or closed.
func (m *Metrics) BreakerChanged(dependency string, open bool) {
	value := 0.0
	if open {
		value = 1
	}
	m.breakers.WithLabelValues(dependency).Set(value)
}

// CatalogReloaded counts a reload of the catalog.
func (m *Metrics) CatalogReloaded(err error) {
	result := "ok"
	if err != nil {
		result = "refused"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// Requested records an HTTP request. route is a pattern, never a path.
func (m *Metrics) Requested(route, method string, status int, took time.Duration) {
	m.requests.of(request{route, method, status}).Observe(took.Seconds())
}

// RejectVerified counts a rejection by the filter that was verified.
func (m *Metrics) RejectVerified(outcome string) { m.rejects.WithLabelValues(outcome).Inc() }

// FilterLoaded counts what came of a published filter.
func (m *Metrics) FilterLoaded(result string) { m.loads.WithLabelValues(result).Inc() }

// LabelledGauge adds one series of a metric whose value is asked for whenever
// it is read.
func (m *Metrics) LabelledGauge(name, help, label, of string, value func() float64) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: of}}, value)
}

// Counter adds a metric that only grows, whose value is asked for whenever it is
// read.
func (m *Metrics) Counter(name, help string, value func() float64) {
	promauto.With(m.registry).NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
}

// Gauge adds a metric whose value is asked for whenever it is read.
func (m *Metrics) Gauge(name, help string, value func() float64) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}
