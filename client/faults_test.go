package client_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/client"
	"github.com/sendgate/sendgate/internal/redistest"
)

const allowOf = `{"notification_id":"n","user_id":%q,"verdict":%q,"reason":"default_on","step":"caps","category":"c","exact":true,"degraded":false}`

// hijack takes a connection over.
func hijack(do func(net.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			do(conn)
			_ = conn.Close()
		}
	}
}

// TestFaults has a gate fail in every way, and the category decide.
func TestFaults(t *testing.T) {
	const json = "application/json"
	g := startGate(t, redistest.Embedded(t))
	for _, f := range []struct {
		name  string
		fault http.HandlerFunc
		cause error
	}{
		{"answers 500", says(500, "application/problem+json", `{"code":"internal","status":500}`), client.ErrFailing},
		{"answers 503", says(503, "application/problem+json", `{"code":"store_unavailable","status":503}`), client.ErrFailing},
		{"is a proxy without a gate", says(404, "text/html", "<html>"), client.ErrFailing},
		{"has too many requests", says(429, "text/plain", "slow down"), client.ErrFailing},
		{"sends elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, client.ErrFailing},
		{"is a web page", says(200, "text/html", "<html>"), client.ErrGarbled},
		{"answers nothing", says(200, json, ""), client.ErrGarbled},
		{"answers null", says(200, json, "null"), client.ErrGarbled},
		{"answers half of it", says(200, json, fmt.Sprintf(allowOf, "u", "allow")[:60]), client.ErrGarbled},
		{"answers for somebody else", says(200, json, fmt.Sprintf(allowOf, "v", "allow")), client.ErrGarbled},
		{"has another verdict", says(200, json, fmt.Sprintf(allowOf, "u", "perhaps")), client.ErrGarbled},
		{"never stops", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", json)
			for spaces := []byte(strings.Repeat(" ", 1<<16)); ; {
				if _, err := w.Write(spaces); err != nil {
					return
				}
			}
		}, client.ErrGarbled},
		{"hangs up", hijack(func(net.Conn) {}), client.ErrUnreachable},
		{"resets", hijack(func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }), client.ErrUnreachable},
		{"hangs up in the middle", hijack(func(c net.Conn) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: 200\r\n\r\n%s", json, fmt.Sprintf(allowOf, "u", "allow")[:60])
		}), client.ErrUnreachable},
		{"speaks another language", hijack(func(c net.Conn) { _, _ = fmt.Fprint(c, "SSH-2.0-x\r\n") }), client.ErrUnreachable},
		{"is silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, client.ErrTimeout},
		{"is slow in the middle", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", json)
			_, _ = fmt.Fprint(w, `{"notification_id":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, client.ErrTimeout},
	} {
		t.Run(f.name, func(t *testing.T) {
			limit := patient
			if errors.Is(f.cause, client.ErrTimeout) {
				limit = 100 * time.Millisecond
			}
			c := newClient(t, func(o *client.Options) { o.Timeout, o.ReportTimeout = limit, limit }, g.URL)
			g.breaks(f.fault)
			for topic, want := range map[string]string{
				"promotions": "suppress unverifiable", "order_updates": "allow unverified", "security_alerts": "allow essential",
			} {
				d, err := c.Check(t.Context(), ask("n", "u", topic))
				if err != nil || said(d) != want || !d.ByClient || !d.Degraded || !errors.Is(d.Cause, f.cause) {
					t.Errorf("%s: %s by the client %v because of %v; %v", topic, said(d), d.ByClient, d.Cause, err)
				}
				if wait := time.Until(d.RetryAt); d.Verdict == sendgate.Suppress && (wait <= 0 || wait > 5*time.Second) {
					t.Errorf("worth asking again at %v", d.RetryAt)
				}
			}
			results, err := c.CheckAll(t.Context(), []sendgate.Check{ask("n", "u", "promotions"), ask("n", "u", "order_updates")}, 0)
			if err != nil || said(results[0].Decision) != "suppress unverifiable" || said(results[1].Decision) != "allow unverified" {
				t.Errorf("a list: %+v, %v", results, err)
			}
			if settled, err := c.Report(t.Context(), []sendgate.Outcome{{Check: ask("n", "u", "promotions")}}); !errors.Is(err, f.cause) && !errors.Is(err, client.ErrGarbled) {
				t.Errorf("a report: %+v, %v", settled, err)
			}
			if s := c.Stats(); s.Answered != 0 || s.Allowed != 3 || s.Suppressed != 2 || s.Unreachable+s.TimedOut+s.Failing+s.Garbled != 5 {
				t.Errorf("%+v", s)
			}
		})
	}
	g.breaks(nil)
}

// TestLists has an answer to several checks be none unless it is one to all.
func TestLists(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	list := []sendgate.Check{ask("n", "u", "order_updates"), ask("n", "v", "order_updates")}
	u, v := fmt.Sprintf(allowOf, "u", "suppress"), fmt.Sprintf(allowOf, "v", "suppress")
	for name, a := range map[string]struct {
		decisions string
		cause     error
	}{
		"one is missing":   {u, client.ErrGarbled},
		"one too many":     {u + "," + v + "," + v, client.ErrGarbled},
		"in another order": {v + "," + u, client.ErrGarbled},
		"one has failed":   {u + `,{"error":{"code":"internal"}}`, client.ErrFailing},
		"whole":            {u + "," + v, nil},
	} {
		c := newClient(t, nil, g.URL)
		g.breaks(says(200, "application/json", `{"decisions":[`+a.decisions+`]}`))
		results, err := c.CheckAll(t.Context(), list, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if d := r.Decision; !errors.Is(d.Cause, a.cause) || d.ByClient != (a.cause != nil) || r.Err != nil {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

// TestANewerGate says more than the client knows.
func TestANewerGate(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	c := newClient(t, nil, g.URL)
	g.breaks(says(200, "application/json", `{"notification_id":"n","user_id":"u","verdict":"suppress","reason":"full_moon","step":"astronomy","phase":1}`))
	if d := g.decided(c, ask("n", "u", "order_updates")); said(d) != "suppress full_moon" || d.Step != "astronomy" {
		t.Errorf("%+v", d)
	}
	g.breaks(says(422, "application/problem+json; charset=utf-8", `{"code":"full_moon","field":"topic","detail":"not today","errors":[{"code":"full_moon","field":"topic","detail":"not today"},{"code":"b"}]}`))
	_, err := c.Check(t.Context(), ask("n", "u", "order_updates"))
	var many sendgate.Errors
	if !errors.As(err, &many) || len(many) != 2 || many[0].Code != "full_moon" {
		t.Errorf("%v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	c := newClient(t, nil, nowhere(t))
	d, err := c.Check(t.Context(), ask("n", "u", "order_updates"))
	if err != nil || said(d) != "allow unverified" || !errors.Is(d.Cause, client.ErrUnreachable) {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestASecondGate is asked where no connection is made to the first, and not
// where the first may have been asked.
func TestASecondGate(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	c := newClient(t, nil, nowhere(t), g.URL)
	for i := range 30 {
		g.decided(c, ask(fmt.Sprint("n", i), "u", "order_updates"))
		if settled, err := c.Report(t.Context(), []sendgate.Outcome{{Check: sendgate.Check{NotificationID: "n", User: "u"}}}); err != nil || settled[0].Err != nil {
			t.Fatalf("%+v, %v", settled, err)
		}
	}
	if s := c.Stats(); s.Answered != 30 || s.Requests >= 45 { // ten failures, then the first is left alone
		t.Errorf("%+v", s)
	}
	other := startGate(t, redistest.Embedded(t))
	other.breaks(says(503, "text/plain", "x"))
	c = newClient(t, nil, other.URL, g.URL)
	byClient := 0
	for i := range 40 {
		if d, err := c.Check(t.Context(), ask(fmt.Sprint("m", i), "u", "order_updates")); err != nil {
			t.Fatal(err)
		} else if d.ByClient {
			byClient++
		}
	}
	if byClient != 10 || other.asked() != 10 {
		t.Errorf("%d were decided by the client", byClient)
	}
}

// TestGatesAreLeftAlone has ten failures end the asking, and one check at a time
// find out when it may go on.
func TestGatesAreLeftAlone(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	var told atomic.Int64
	c := newClient(t, func(o *client.Options) { o.Requests, o.Own = 1, func(client.Decision) { told.Add(1) } }, g.URL)
	g.breaks(says(503, "text/plain", "x"))
	for i := range 50 {
		d, err := c.Check(t.Context(), ask(fmt.Sprint("n", i), "u", "order_updates"))
		if cause := d.Cause; err != nil || said(d) != "allow unverified" || i < 10 != errors.Is(cause, client.ErrFailing) || i >= 10 != errors.Is(cause, client.ErrTripped) {
			t.Fatalf("%d: %+v, %v", i, d, err)
		}
	}
	if n := g.asked(); n != 10 || told.Load() != 50 {
		t.Errorf("asked %d times, told of %d", n, told.Load())
	}
	arrived, release := make(chan struct{}, 1000), make(chan struct{})
	g.breaks(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		g.node.ServeHTTP(w, r)
	})
	var probes, others sync.WaitGroup
	redistest.Until(t, "a probe is let through", func() bool {
		probes.Go(func() { _, _ = c.Check(t.Context(), ask("p", "u", "order_updates")) })
		select {
		case <-arrived:
			return true
		default:
			return false
		}
	})
	for range 100 {
		others.Go(func() {
			if d, err := c.Check(t.Context(), ask("n", "u", "order_updates")); err != nil || !errors.Is(d.Cause, client.ErrTripped) {
				t.Errorf("beside the probe: %+v, %v", d, err)
			}
		})
	}
	others.Wait() // nobody waits for the probe
	if n := g.asked(); n != 1 {
		t.Errorf("%d probes at once", n)
	}
	close(release)
	probes.Wait()
	g.decided(c, ask("n", "u", "order_updates"))
}

// TestTheClientStaysLight holds what a router would have to link against.
func TestTheClientStaysLight(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/sendgate/sendgate"
	light := map[string]bool{
		module: true, module + "/client": true, module + "/guard": true, module + "/quiet": true, "github.com/sony/gobreaker/v2": true,
	}
	deps := strings.Fields(string(out))
	for _, dep := range deps {
		if !light[dep] {
			t.Errorf("the client needs %s", dep)
		}
	}
	if len(deps) < 3 {
		t.Errorf("only %v", deps)
	}
}
