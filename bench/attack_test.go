package bench

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// slow is how long a check may take while a filter is swapped in.
const slow = 5 * time.Millisecond

// asks is what one kind of request asks of a server.
type asks struct {
	url    string
	body   func() []byte
	checks int // in each request
}

// Target is vegeta's view of the next request.
func (a asks) target(t *vegeta.Target) error {
	*t = vegeta.Target{Method: http.MethodPost, URL: a.url, Body: a.body(), Header: jsonHeader}
	return nil
}

// jsonHeader says also that a check may be sent again: a connection that the gate
// closes because nothing was asked on it for some seconds costs no failure. The
// empty header is not sent.
var jsonHeader = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": nil}

// client is shared by all attacks, so that they find connections open.
var client = &http.Client{
	Timeout:   30 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: mostWorkers, DisableCompression: true},
}

const mostWorkers = 1024 // requests that are under way at once

// outcome is what came of many requests.
type outcome struct {
	checks   int
	lasted   time.Duration
	took     *latencies      // of requests that were answered, from when they were due
	failed   int             // no 200, or decided without the record or the caps
	slow     int             // answered, later than slow
	admitted int             // answered with an allow; of batches, requests with one
	late     *latencies      // of sending, which is the generator's own doing
	harmed   []time.Duration // after the beginning were those due that failed or were slow
	why      string          // the first failure
}

// perSecond is the rate of checks that were answered.
func (o *outcome) perSecond() float64 { return float64(o.checks) / o.lasted.Seconds() }

// closed asks as fast as so many callers can who each wait for their answer.
func closed(a asks, callers int, lasting time.Duration) *outcome {
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.Workers(uint64(callers)), vegeta.MaxWorkers(uint64(callers)))
	o := newOutcome()
	began := time.Now()
	for r := range attacker.Attack(a.target, vegeta.Rate{}, lasting, "") {
		o.take(a, r, r.Latency)
	}
	o.lasted = time.Since(began)
	return o
}

// open asks at a rate, whether or not earlier requests were answered.
func open(a asks, rate float64, lasting time.Duration) *outcome {
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.Workers(64), vegeta.MaxWorkers(mostWorkers))
	o, s := newOutcome(), newSchedule(rate, lasting)
	began := time.Now()
	for r := range attacker.Attack(a.target, s, 0, "") {
		o.late.add(s.late(r))
		if before := o.failed + o.slow; o.take(a, r, s.took(r)) > before {
			o.harmed = append(o.harmed, s.after(r.Seq))
		}
	}
	o.lasted = time.Since(began)
	return o
}

func newOutcome() *outcome { return &outcome{took: newLatencies(), late: newLatencies()} }

// take takes one answer, and returns how many have failed or were slow so far.
func (o *outcome) take(a asks, r *vegeta.Result, took time.Duration) int {
	switch {
	case r.Error != "" || r.Code != http.StatusOK:
		return o.fail(r.Error)
	case bytes.Contains(r.Body, []byte(`"degraded":true`)) || bytes.Contains(r.Body, []byte(`"error":`)):
		_, why, _ := strings.Cut(string(r.Body), `"verdict":`)
		why, _, _ = strings.Cut(why, `,"category"`)
		return o.fail("answered " + why)
	case bytes.Contains(r.Body, []byte(`"verdict":"allow"`)):
		o.admitted++
	}
	o.checks += a.checks
	o.took.add(took)
	if took > slow {
		o.slow++
	}
	return o.failed + o.slow
}

func (o *outcome) fail(why string) int {
	if o.failed++; o.failed == 1 {
		o.why = why[:min(200, len(why))]
	}
	return o.failed + o.slow
}
