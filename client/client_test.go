package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/client"
	"github.com/sendgate/sendgate/internal/redistest"
)

func TestDecisionsOfAGate(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	g.optOut("out")
	g.call(http.MethodPatch, "/v1/users/asleep/preferences", `{"quiet_hours":{"start":"11:00","end":"13:00","timezone":"UTC"}}`)
	c := newClient(t, nil, g.URL)
	check := ask("n1", `a"b<c>&/ü`, "promotions")
	check.CampaignID, check.Attributes, check.Priority = "c7", map[string]string{"region": "eu"}, sendgate.PriorityHigh
	d := g.decided(c, check)
	if d.User != check.User || said(d) != "allow default_on" || d.Step != "caps" || d.Category != "marketing" || !d.Exact || d.Degraded || d.Cause != nil {
		t.Errorf("allowed: %+v", d)
	}
	if len(d.Caps) != 1 || d.Caps[0].Used != 1 || d.Caps[0].Limit != 2 || d.Caps[0].Window != "24h" || d.Caps[0].ResetsAt.IsZero() {
		t.Errorf("caps: %+v", d.Caps)
	}
	if d := g.decided(c, ask("n1", "out", "promotions")); said(d) != "suppress opted_out" {
		t.Errorf("opted out: %+v", d)
	}
	if d := g.decided(c, ask("n1", "asleep", "promotions")); said(d) != "defer quiet_hours" || d.DeliverAt.UTC().Hour() != 13 {
		t.Errorf("asleep: %+v", d)
	}
	if s := c.Stats(); s.Answered != 3 || s.Requests != 3 || s.Allowed+s.Suppressed+s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

// TestManyAtOnce has answers find their way back to who has asked.
func TestManyAtOnce(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	for i := range 20 {
		g.optOut(fmt.Sprintf("out%d", i))
	}
	for name, batch := range map[string]int{"in batches": 0, "alone": 1} {
		t.Run(name, func(t *testing.T) {
			g.asked()
			c := newClient(t, func(o *client.Options) { o.Batch = batch }, g.URL)
			var wg sync.WaitGroup
			for i := range 400 {
				wg.Go(func() {
					user, want := fmt.Sprintf("out%d", i%20), "suppress opted_out"
					if i%2 == 0 {
						user, want = fmt.Sprintf("%s%d", name, i), "allow default_on"
					}
					d, err := c.Check(t.Context(), ask("n", user, "promotions"))
					if err != nil || said(d) != want || d.User != sendgate.UserID(user) {
						t.Errorf("%s: %+v, %v", user, d, err)
					}
				})
			}
			wg.Wait()
			s := c.Stats()
			if asked := g.asked(); s.Answered != 400 || batch == 1 && asked != 400 || batch == 0 && asked > 200 {
				t.Errorf("%d requests: %+v", asked, s)
			}
		})
	}
}

func TestWrongChecksAreErrors(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	c := newClient(t, nil, g.URL)
	for _, w := range []struct {
		change func(*sendgate.Check)
		code   sendgate.Code
		field  string
	}{
		{func(c *sendgate.Check) { c.Topic = "nothing" }, sendgate.CodeUnknownTopic, "topic"}, // the gate says so
		{func(c *sendgate.Check) { c.Topic = "\xff" }, sendgate.CodeUnknownTopic, "topic"},
		{func(c *sendgate.Check) { c.Topic = "" }, sendgate.CodeMissingField, "topic"},
		{func(c *sendgate.Check) { c.Channel = "fax" }, sendgate.CodeUnknownChannel, "channel"},
		{func(c *sendgate.Check) { c.Channel = strings.Repeat("x", 65) }, sendgate.CodeUnknownChannel, "channel"},
		{func(c *sendgate.Check) { c.Channel = "" }, sendgate.CodeMissingField, "channel"},
		{func(c *sendgate.Check) { c.User = "a\xffb" }, sendgate.CodeInvalidUserID, "user_id"}, // would become another user
		{func(c *sendgate.Check) { c.NotificationID = "" }, sendgate.CodeInvalidNotificationID, "notification_id"},
		{func(c *sendgate.Check) { c.Attributes = map[string]string{"a": "\xff"} }, sendgate.CodeInvalidField, "attributes.a"},
		{func(c *sendgate.Check) { c.Priority = 7 }, sendgate.CodeInvalidField, "priority"},
	} {
		check := ask("n", "u", "promotions")
		w.change(&check)
		_, err := c.Check(t.Context(), check)
		var e *sendgate.Error
		if !errors.As(err, &e) || e.Code != w.code || e.Field != w.field {
			t.Errorf("%s of %s: %v", w.code, w.field, err)
		}
		results, err := c.CheckAll(t.Context(), []sendgate.Check{ask("n", "u", "order_updates"), check}, 0)
		if err != nil || results[0].Err != nil || results[0].Decision.Verdict != sendgate.Allow || sendgate.CodeOf(results[1].Err) != w.code {
			t.Errorf("%s of %s in a list: %+v, %v", w.code, w.field, results, err)
		}
	}
	_, err := c.Check(t.Context(), sendgate.Check{})
	var many sendgate.Errors
	if !errors.As(err, &many) || len(many) != 2 {
		t.Errorf("nothing at all: %v", err)
	}
	if s := c.Stats(); s.Refused != 21 || s.Allowed+s.Suppressed != 0 {
		t.Errorf("%+v", s)
	}
}

func TestTakeFromAList(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	c := newClient(t, nil, g.URL)
	g.optOut("u")
	email := ask("n", "u", "promotions")
	email.Channel = "email"
	list := []sendgate.Check{ask("n", "u", "promotions"), email, ask("m", "u", "order_updates")}
	verdicts := func() (v []string) {
		t.Helper()
		results, err := c.CheckAll(t.Context(), list, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			v = append(v, said(r.Decision))
		}
		return v
	}
	if diff := cmp.Diff([]string{"suppress opted_out", "allow default_on", "suppress not_taken"}, verdicts()); diff != "" {
		t.Error(diff)
	}
	g.breaks(says(500, "text/plain", "x"))
	if diff := cmp.Diff([]string{"suppress unverifiable", "suppress unverifiable", "allow unverified"}, verdicts()); diff != "" {
		t.Error("without a gate:", diff)
	}
	list = append(list, ask("o", "u", "order_updates"))
	if got := verdicts(); got[3] != "suppress not_taken" {
		t.Errorf("without a gate, one of two: %v", got)
	}
	large := make([]sendgate.Check, client.MaxList)
	for i := range large {
		large[i] = ask("n", "u", "order_updates")
		large[i].Attributes = map[string]string{}
		for k := range 16 {
			large[i].Attributes[fmt.Sprint("a", k)] = strings.Repeat("x", 256)
		}
	}
	if err := errOf(c.CheckAll(t.Context(), large, 0)); sendgate.CodeOf(err) != sendgate.CodeBodyTooLarge {
		t.Errorf("too large: %v", err)
	}
	if err := errOf(c.Report(t.Context(), outcomesOf(large))); sendgate.CodeOf(err) != sendgate.CodeBodyTooLarge {
		t.Errorf("a report too large: %v", err)
	}
	for name, err := range map[string]error{
		"two users":   errOf(c.CheckAll(t.Context(), []sendgate.Check{ask("n", "u", "promotions"), ask("n", "v", "promotions")}, 1)),
		"less than 0": errOf(c.CheckAll(t.Context(), list, -1)),
		"too many":    errOf(c.CheckAll(t.Context(), make([]sendgate.Check, client.MaxList+1), 0)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func outcomesOf(checks []sendgate.Check) (outcomes []sendgate.Outcome) {
	for _, c := range checks {
		outcomes = append(outcomes, sendgate.Outcome{Check: c})
	}
	return outcomes
}

func errOf[T any](_ T, err error) error { return err }

// TestFailedOpenIsCountedOnce has the client allow what no gate was asked for,
// and the report of it make up for that.
func TestFailedOpenIsCountedOnce(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	c := newClient(t, nil, g.URL)
	report := func(o ...sendgate.Outcome) []client.Settlement {
		t.Helper()
		settled, err := c.Report(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return settled
	}
	g.breaks(says(503, "text/plain", "x"))
	d, err := c.Check(t.Context(), ask("n1", "u", "order_updates"))
	if err != nil || said(d) != "allow unverified" || !d.ByClient || !d.Degraded {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := c.Report(t.Context(), []sendgate.Outcome{d.Outcome(sendgate.Delivered)}); !errors.Is(err, client.ErrFailing) {
		t.Errorf("reported to nobody: %v", err)
	}
	g.breaks(nil)
	report(d.Outcome(sendgate.Delivered))
	report(d.Outcome(sendgate.Delivered))
	if n := g.used(c, "u", "order_updates"); n != 2 { // and one for looking
		t.Errorf("%d slots are taken", n)
	}
	// The gate decides, and its answer is lost.
	g.breaks(func(w http.ResponseWriter, r *http.Request) {
		g.node.ServeHTTP(discard{http.Header{}}, r)
		w.WriteHeader(http.StatusBadGateway)
	})
	if d, err = c.Check(t.Context(), ask("n2", "v", "order_updates")); err != nil || !d.ByClient {
		t.Fatalf("%+v, %v", d, err)
	}
	g.breaks(nil)
	report(d.Outcome(sendgate.Delivered))
	if n := g.used(c, "v", "order_updates"); n != 2 {
		t.Errorf("%d slots are taken where the gate had decided", n)
	}
	// A decision of the gate's is settled by its ids, and given back if it failed.
	own := g.decided(c, ask("n3", "w", "order_updates"))
	if o := own.Outcome(sendgate.Delivered); o.Check.Topic != "" || o.Check.Channel != "push" {
		t.Errorf("%+v", o)
	}
	wrong := own.Outcome(sendgate.Failed)
	wrong.Check.Channel = "fax"
	settled := report(own.Outcome(sendgate.Failed), wrong, sendgate.Outcome{Check: sendgate.Check{NotificationID: "n", User: "\xff"}})
	if settled[0].Status != "given_back" || sendgate.CodeOf(settled[1].Err) != sendgate.CodeUnknownChannel || sendgate.CodeOf(settled[2].Err) != sendgate.CodeInvalidUserID {
		t.Errorf("%+v", settled)
	}
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header            { return d.h }
func (d discard) Write(data []byte) (int, error) { return len(data), nil }
func (d discard) WriteHeader(int)                {}

func TestWhoGivesUp(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	c := newClient(t, nil, g.URL)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Check(cancelled, ask("n", "u", "order_updates")); !errors.Is(err, context.Canceled) {
		t.Errorf("gone before: %v", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if d, err := c.Check(late, ask("n", "u", "order_updates")); err != nil || said(d) != "allow unverified" || !errors.Is(d.Cause, client.ErrTimeout) {
		t.Errorf("too late: %+v, %v", d, err)
	}
	if n := g.asked(); n != 0 {
		t.Errorf("the gate was asked %d times", n)
	}
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	g.breaks(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		g.node.ServeHTTP(w, r)
	})
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for _, do := range []func() error{
		func() error { return errOf(c.Check(waiting, ask("n", "u", "order_updates"))) },
		func() error { return errOf(c.CheckAll(waiting, []sendgate.Check{ask("n", "u", "order_updates")}, 0)) },
		func() error {
			return errOf(c.Report(waiting, []sendgate.Outcome{{Check: ask("n", "u", "order_updates")}}))
		},
	} {
		wg.Go(func() {
			if err := do(); !errors.Is(err, context.Canceled) {
				t.Errorf("gone meanwhile: %v", err)
			}
		})
		<-arrived
	}
	cancel()
	wg.Wait()
	close(release)
}

func TestClose(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	c := newClient(t, nil, g.URL)
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	g.breaks(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		g.node.ServeHTTP(w, r)
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		if d, err := c.Check(t.Context(), ask("n", "u", "order_updates")); err != nil || said(d) != "allow default_on" {
			t.Errorf("what was under way: %+v, %v", d, err)
		}
	})
	<-arrived
	closed := make(chan struct{})
	go func() { c.Close(); close(closed) }()
	redistest.Until(t, "the client takes no calls", func() bool { return errors.Is(c.Refresh(t.Context()), client.ErrClosed) })
	select {
	case <-closed:
		t.Error("Close did not wait")
	default:
	}
	close(release)
	<-closed
	wg.Wait()
	for name, err := range map[string]error{
		"Check":    errOf(c.Check(t.Context(), ask("n", "u", "order_updates"))),
		"CheckAll": errOf(c.CheckAll(t.Context(), []sendgate.Check{ask("n", "u", "order_updates")}, 0)),
		"Report":   errOf(c.Report(t.Context(), []sendgate.Outcome{{Check: ask("n", "u", "order_updates")}})),
	} {
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]client.Options{
		"no URL":          {},
		"no host":         {URLs: []string{"http://"}},
		"no scheme":       {URLs: []string{"gate:8080"}},
		"a query":         {URLs: []string{"http://gate/?x=1"}},
		"a second one":    {URLs: []string{"http://gate", "ftp://gate"}},
		"no time":         {URLs: []string{"http://gate"}, Timeout: -1},
		"too many checks": {URLs: []string{"http://gate"}, Batch: 1001},
		"too many calls":  {URLs: []string{"http://gate"}, Requests: 65},
		"nobody waits":    {URLs: []string{"http://gate"}, Waiting: -1},
		"a busy catalog":  {URLs: []string{"http://gate"}, CatalogEvery: time.Millisecond},
	} {
		if c, err := client.New(o); err == nil {
			c.Close()
			t.Errorf("%s: no error", name)
		}
	}
}
