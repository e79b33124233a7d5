package metrics

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/sendgate/sendgate"
)

// To find a series by its labels costs more than a check in process does. Those
// that every check and every request moves are found once and kept; a series is
// still born when it is first moved.

// decisionCounters are the series of sendgate_decisions_total.
type decisionCounters struct {
	all  *prometheus.CounterVec
	kept [sendgate.StepCaps + 1][sendgate.Defer + 1][sendgate.ReasonNotTaken + 1][2]atomic.Pointer[prometheus.Counter]
}

func newDecisionCounters(f promauto.Factory) *decisionCounters {
	return &decisionCounters{all: f.NewCounterVec(prometheus.CounterOpts{
		Name: "sendgate_decisions_total",
		Help: "Decisions, by the step that ended the check, verdict, reason, and whether something that had to be known was not.",
	}, []string{"step", "verdict", "reason", "degraded"})}
}

func (c *decisionCounters) of(d *sendgate.Decision) prometheus.Counter {
	degraded := 0
	if d.Degraded {
		degraded = 1
	}
	kept := &c.kept[d.Step][d.Verdict][d.Reason][degraded]
	if known := kept.Load(); known != nil {
		return *known
	}
	found := c.all.WithLabelValues(d.Step.String(), d.Verdict.String(), d.Reason.String(), strconv.FormatBool(d.Degraded))
	kept.Store(&found)
	return found
}

// request is what requests are told apart by. There are as many of them as
// there are routes, methods and statuses.
type request struct {
	route, method string
	status        int
}

// requestTimes are the series of sendgate_http_request_seconds.
type requestTimes struct {
	all  *prometheus.HistogramVec
	kept atomic.Pointer[map[request]prometheus.Observer]
	mu   sync.Mutex // held by who adds to kept, which is replaced as a whole
}

func newRequestTimes(f promauto.Factory) *requestTimes {
	r := &requestTimes{all: f.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sendgate_http_request_seconds",
		Help:    "HTTP requests, by route, method and status.",
		Buckets: fast,
	}, []string{"route", "method", "status"})}
	r.kept.Store(&map[request]prometheus.Observer{})
	return r
}

func (r *requestTimes) of(q request) prometheus.Observer {
	if known, ok := (*r.kept.Load())[q]; ok {
		return known
	}
	found := r.all.WithLabelValues(q.route, q.method, strconv.Itoa(q.status))
	r.mu.Lock()
	defer r.mu.Unlock()
	more := maps.Clone(*r.kept.Load())
	more[q] = found
	r.kept.Store(&more)
	return found
}
