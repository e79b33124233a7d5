package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/client"
	"github.com/sendgate/sendgate/internal/redistest"
)

// TestPolicies has no gate to ask, at noon and at night.
func TestPolicies(t *testing.T) {
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	campaign := ask("n", "u", "ads")
	campaign.CampaignID = "c7"
	for _, c := range []struct {
		name  string
		hour  int
		check sendgate.Check
		want  string
		at    time.Time // of DeliverAt or RetryAt
	}{
		{"essential", 12, ask("n", "u", "security_alerts"), "allow essential", time.Time{}},
		{"transactional", 12, ask("n", "u", "order_updates"), "allow unverified", time.Time{}},
		{"marketing", 12, ask("n", "u", "promotions"), "suppress unverifiable", day.Add(12*time.Hour + 5*time.Second)},
		{"under a cap that has to be kept", 12, campaign, "suppress unverifiable", day.Add(12*time.Hour + 5*time.Second)},
		{"not under that cap", 12, ask("n", "u", "ads"), "allow unverified", time.Time{}},
		{"in allowed hours", 12, ask("n", "u", "reminders"), "allow unverified", time.Time{}},
		{"outside allowed hours", 23, ask("n", "u", "reminders"), "defer quiet_hours", day.Add(33 * time.Hour)},
		{"of a topic that is newer than the catalog", 12, ask("n", "u", "flash_sales"), "suppress unverifiable", day.Add(12*time.Hour + 5*time.Second)},
	} {
		o := func(o *client.Options) {
			o.Now = func() time.Time { return day.Add(time.Duration(c.hour) * time.Hour) }
		}
		d, err := newClient(t, o, nowhere(t)).Check(t.Context(), c.check)
		at := d.RetryAt
		if d.Verdict == sendgate.Defer {
			at = d.DeliverAt
		}
		if err != nil || said(d) != c.want || !at.Equal(c.at) || !d.ByClient || !d.Degraded || d.User != "u" || d.NotificationID != "n" {
			t.Errorf("%s: %+v, %v", c.name, d, err)
		}
		d, err = newClient(t, func(opts *client.Options) { o(opts); opts.Catalog = nil }, nowhere(t)).Check(t.Context(), c.check)
		if err != nil || said(d) != "suppress unverifiable" || d.RetryAt.IsZero() || !d.ByClient || !d.Degraded {
			t.Errorf("%s, without a catalog: %+v, %v", c.name, d, err)
		}
	}
}

// TestTheCatalogIsLearned, kept while there is none to be had, and replaced.
func TestTheCatalogIsLearned(t *testing.T) {
	g := startGate(t, redistest.Embedded(t))
	c := newClient(t, func(o *client.Options) { o.Catalog = nil }, g.URL)
	redistest.Until(t, "the catalog is learned", func() bool { return c.Catalog() != nil })
	if at := c.Stats().CatalogAt; at.IsZero() {
		t.Error("nobody knows when")
	}
	g.breaks(says(503, "text/plain", "x"))
	if d, err := c.Check(t.Context(), ask("n", "u", "order_updates")); err != nil || said(d) != "allow unverified" {
		t.Errorf("%+v, %v", d, err)
	}
	answer := httptest.NewRecorder()
	g.node.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v1/catalog", nil))
	text := answer.Body.String()
	var serves atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, *serves.Load())
	}))
	defer server.Close()
	serves.Store(&text)
	c = newClient(t, nil, server.URL)
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	known := c.Catalog()
	for name, wrong := range map[string]string{
		"half":                text[:len(text)/2],
		"another document":    `{"status":"ok"}`,
		"of words not known":  strings.ReplaceAll(text, `"transactional"`, `"lunar"`),
		"a topic of nowhere":  strings.Replace(text, `{"category":"transactional"}`, `{"category":"nothing"}`, 1),
		"no JSON at all":      "<html>",
		"nothing":             "",
		"a catalog and more":  text + "{}",
		"of the wrong letter": "[]",
	} {
		serves.Store(&wrong)
		if err := c.Refresh(t.Context()); err == nil || c.Catalog() != known {
			t.Errorf("%s: %v", name, err)
		}
	}
	newer := strings.Replace(text, `"topics":{`, `"seasons":["winter"],"topics":{"flash_sales":{"category":"transactional"},`, 1)
	serves.Store(&newer)
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Catalog().Topic("flash_sales"); !ok {
		t.Error("the newer catalog is not in force")
	}
	if err := newClient(t, nil, nowhere(t)).Refresh(t.Context()); err == nil || errors.Is(err, client.ErrClosed) {
		t.Errorf("nobody to ask: %v", err)
	}
}
