package client

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sendgate/sendgate"
)

// What Options stand for where they do not say.
const (
	// DefaultTimeout is what a gate takes at the worst, with the limits that it
	// has by default (5 ms for each call to Redis, 50 ms for the store), and a
	// network between.
	DefaultTimeout       = 100 * time.Millisecond
	DefaultReportTimeout = 2 * time.Second
	DefaultCatalogEvery  = time.Minute
	DefaultRequests      = 2
	DefaultBatch         = 100
	DefaultWaiting       = 4096
)

// The bounds of Options.
const (
	minTimeout = time.Millisecond
	maxTimeout = time.Minute
	minEvery   = time.Second
	maxEvery   = 24 * time.Hour
	maxWaiting = 1 << 20
)

// Options are what a Client is made of. URLs is required. The zero value of
// every other member stands for its default.
type Options struct {
	// URLs of the gates, such as `http://gate:8080`. Requests go to one after
	// the other. A check has one attempt, and another one at the next gate only
	// if no connection was made: it cannot have been asked twice.
	URLs []string
	// Timeout of one check, from the call to the decision, waiting for others
	// included; 1ms to 1m. A list has it once for each hundred checks begun. A
	// deadline of the context that is earlier counts in its place.
	Timeout time.Duration
	// ReportTimeout of one call of Report, 1ms to 1m.
	ReportTimeout time.Duration
	// Catalog is in force until a gate has been asked for its own. It is the
	// one of the time at which the program was built: see ParseCatalog. Nil is
	// none, and then everything is suppressed as long as no gate answers.
	Catalog *sendgate.Catalog
	// CatalogEvery is how often a gate is asked for its catalog, 1s to 24h.
	CatalogEvery time.Duration
	// Requests is how many requests of collected checks are under way at once,
	// 1 to 64. Fewer make larger batches.
	Requests int
	// Batch is how many checks one request carries, 1 to 1,000. With 1 nothing
	// is collected: every check is a request of its own, at once.
	Batch int
	// Waiting is how many checks may wait for a request, up to 1,048,576. What
	// comes beyond it is decided by the client at once.
	Waiting int
	// HTTPClient sends the requests, for instance with a header that a proxy
	// asks for; it follows no redirects here. Nil is one with connections of
	// its own, which Close closes.
	HTTPClient *http.Client
	// Own is told of every decision that the client has made itself. It must be
	// quick and safe for concurrent use.
	Own func(Decision)
	// Log takes a line when a gate is not asked any more, or again, and when
	// there is trouble with the catalog; nil is none. It names no users.
	Log *slog.Logger
	// Now is the clock of allowed hours, RetryAt and reports; nil is the
	// machine's.
	Now func() time.Time
}

// complete fills in the defaults and holds the rest against the bounds.
func (o *Options) complete() error {
	orDefault(&o.Timeout, DefaultTimeout)
	orDefault(&o.ReportTimeout, DefaultReportTimeout)
	orDefault(&o.CatalogEvery, DefaultCatalogEvery)
	orDefault(&o.Requests, DefaultRequests)
	orDefault(&o.Batch, DefaultBatch)
	orDefault(&o.Waiting, DefaultWaiting)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Own == nil {
		o.Own = func(Decision) {}
	}
	if o.Now == nil {
		o.Now = sendgate.SystemClock
	}
	errs := []error{
		within("Timeout", o.Timeout, minTimeout, maxTimeout),
		within("ReportTimeout", o.ReportTimeout, minTimeout, maxTimeout),
		within("CatalogEvery", o.CatalogEvery, minEvery, maxEvery),
		within("Requests", o.Requests, 1, callsAtOnce),
		within("Batch", o.Batch, 1, maxItems),
		within("Waiting", o.Waiting, 1, maxWaiting),
	}
	if len(o.URLs) == 0 {
		errs = append(errs, errors.New("client: URLs: at least one is required"))
	}
	for _, u := range o.URLs {
		errs = append(errs, urlFault(u))
	}
	return errors.Join(errs...)
}

func orDefault[T comparable](v *T, byDefault T) {
	if *v == *new(T) {
		*v = byDefault
	}
}

func within[T int | time.Duration](name string, v, least, most T) error {
	if v < least || v > most {
		return fmt.Errorf("client: %s has to be from %v to %v", name, least, most)
	}
	return nil
}

func urlFault(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("client: URLs: has to be such as http://gate:8080")
	}
	return nil
}

// base is a URL that a path can follow.
func base(text string) string { return strings.TrimRight(text, "/") }

// httpClient is what sends requests, and whether it is the client's own.
func (o *Options) httpClient() (hc *http.Client, own bool) {
	if own = o.HTTPClient == nil; own {
		// A dial is not ended by the request that has asked for it. Where there
		// is another gate, it has to leave time to try that one.
		dial := o.Timeout
		if len(o.URLs) > 1 {
			dial /= 2
		}
		hc = &http.Client{Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dial}).DialContext,
			TLSHandshakeTimeout: o.Timeout,
			MaxIdleConns:        2 * callsAtOnce * len(o.URLs),
			MaxIdleConnsPerHost: 2 * callsAtOnce,
			IdleConnTimeout:     time.Minute, // a gate closes them after two
			DisableCompression:  true,
		}}
	} else {
		given := *o.HTTPClient
		hc = &given
	}
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return hc, own
}
