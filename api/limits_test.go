package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sendgate/sendgate"
)

const limitsURL = "/v1/limits"

// limitsRefusals are refused as the body of PUT.
var limitsRefusals = []refusal{
	{"nothing", `{}`, 422, sendgate.CodeMissingField, "by"},
	{"no fields", `{"by":[],"values":[],"limits":[]}`, 422, sendgate.CodeMissingField, "by"},
	{"null limits", `{"by":["campaign_id"],"values":["c7"],"limits":null}`, 422, sendgate.CodeMissingField, "limits"},
	{"unknown member", `{"by":["campaign_id"],"values":["c7"],"limit":[]}`, 400, sendgate.CodeUnknownField, "limit"},
	{"member twice", `{"by":["campaign_id"],"by":["campaign_id"],"values":["c7"],"limits":[]}`, 400, sendgate.CodeDuplicateField, "by"},
	{"a number for a value", `{"by":["campaign_id"],"values":[7],"limits":[]}`, 400, sendgate.CodeMalformedJSON, "values[0]"},
	{"null for a field", `{"by":[null],"values":["c7"],"limits":[]}`, 400, sendgate.CodeMalformedJSON, "by[0]"},
	{"an object for limits", `{"by":["campaign_id"],"values":["c7"],"limits":{}}`, 400, sendgate.CodeMalformedJSON, "limits"},
	{"a text for a limit", limitsOf(`{"window":"24h","limit":"3"}`), 400, sendgate.CodeMalformedJSON, "limits[0].limit"},
	{"unknown member of a limit", limitsOf(`{"window":"24h","limit":3,"kind":"rolling"}`), 400, sendgate.CodeUnknownField, "limits[0].kind"},
	{"no window", limitsOf(`{"limit":3}`), 422, sendgate.CodeMissingField, "limits[0].window"},
	{"no limit", limitsOf(`{"window":"24h","limit":1},{"window":"7d"}`), 422, sendgate.CodeMissingField, "limits[1].limit"},
	{"a fraction", limitsOf(`{"window":"24h","limit":1.5}`), 422, sendgate.CodeInvalidCap, "limits[0].limit"},
	{"below 0", limitsOf(`{"window":"24h","limit":-1}`), 422, sendgate.CodeInvalidCap, "limits[0].limit"},
	{"too many", limitsOf(`{"window":"24h","limit":10001}`), 422, sendgate.CodeInvalidCap, "limits[0].limit"},
	{"no duration", limitsOf(`{"window":"1w","limit":1}`), 422, sendgate.CodeInvalidCap, "limits[0].window"},
	{"too long", limitsOf(`{"window":"32d","limit":1}`), 422, sendgate.CodeInvalidCap, "limits[0].window"},
	{"a window twice", limitsOf(`{"window":"24h","limit":1},{"window":"1d","limit":2}`), 422, sendgate.CodeDuplicateEntry, "limits[1].window"},
	{"an unknown field", `{"by":["colour"],"values":["red"],"limits":[]}`, 422, sendgate.CodeInvalidField, "by[0]"},
	{"an empty value", `{"by":["campaign_id"],"values":[""],"limits":[]}`, 422, sendgate.CodeInvalidField, "values[0]"},
	{"a value too few", `{"by":["campaign_id","channel"],"values":["c7"],"limits":[]}`, 422, sendgate.CodeInvalidField, "values"},
	{"fields of no cap", `{"by":["sender_id"],"values":["s"],"limits":[{"window":"24h","limit":1}]}`, 422, sendgate.CodeInvalidCap, "by"},
}

// limitsOf is a body with limits of campaign c7.
func limitsOf(limits string) string { return limitsOfCampaign("c7", limits) }

func limitsOfCampaign(id, limits string) string {
	return fmt.Sprintf(`{"by":["campaign_id"],"values":[%q],"limits":[%s]}`, id, limits)
}

func TestLimitsOfSingleValues(t *testing.T) {
	c, st := readContract(t), newStack(t)
	ask := func(n int, campaign string) string {
		body := fmt.Sprintf(`{"notification_id":"n%d","user_id":"u_%s","topic":"promotions","channel":"push","campaign_id":%q}`, n, campaign, campaign)
		return fmt.Sprint(c.holds(st, 200, "POST", "/v1/check", body).ok()["verdict"])
	}
	set := c.holds(st, 200, "PUT", limitsURL, limitsOf(`{"window":"7d","limit":10},{"window":"1d","limit":1}`), "Sendgate-Actor", "planner")
	if want := `{"by":["campaign_id"],"values":["c7"],"limits":[{"window":"24h","limit":1},{"window":"7d","limit":10}]}`; strings.TrimSpace(string(set.body)) != want {
		t.Errorf("set: %s", set.body)
	}
	for i, want := range []string{"allow", "suppress"} {
		if got := ask(i, "c7"); got != want {
			t.Errorf("check %d of c7: %s", i, got)
		}
	}
	for i, want := range []string{"allow", "allow", "suppress"} { // the catalog's 2
		if got := ask(i, "c8"); got != want {
			t.Errorf("check %d of c8: %s", i, got)
		}
	}
	removed := c.holds(st, 200, "PUT", limitsURL, limitsOf(""))
	if want := `{"by":["campaign_id"],"values":["c7"],"limits":[]}`; strings.TrimSpace(string(removed.body)) != want {
		t.Errorf("removed: %s", removed.body)
	}
	if got := ask(1, "c7"); got != "allow" {
		t.Errorf("without limits of its own: %s", got)
	}
}

func TestLimitsAreListed(t *testing.T) {
	c, st := readContract(t), newStack(t)
	if a := c.holds(st, 200, "GET", limitsURL, ""); strings.TrimSpace(string(a.body)) != `{"entries":[]}` {
		t.Errorf("nothing is listed as %s", a.body)
	}
	for i := range 5 {
		c.holds(st, 200, "PUT", limitsURL, limitsOfCampaign(fmt.Sprint("c", i), `{"window":"24h","limit":1}`))
	}
	c.holds(st, 200, "PUT", limitsURL, `{"by":["channel","campaign_id"],"values":["push","c0"],"limits":[{"window":"24h","limit":1}]}`)
	for target, want := range map[string]string{
		"?limit=2":                "c0 | c1 || c2 | c3 || c4 | c0 push",
		"?limit=2&by=campaign_id": "c0 | c1 || c2 | c3 || c4",
		"?by=channel,campaign_id": "c0 push",
		"?by=campaign_id,channel": "c0 push",
		"?by=sender_id":           "",
	} {
		var pages []string
		for after := ""; ; {
			doc := c.holds(st, 200, "GET", limitsURL+target+after, "").ok()
			var page []string
			for _, e := range doc["entries"].([]any) {
				page = append(page, strings.Trim(fmt.Sprint(e.(map[string]any)["values"]), "[]"))
			}
			pages = append(pages, strings.Join(page, " | "))
			if doc["next"] == nil {
				break
			}
			after = "&after=" + doc["next"].(string)
		}
		if got := strings.Join(pages, " || "); got != want {
			t.Errorf("%s: %s; want %s", target, got, want)
		}
	}
}

func TestRefusalsOfLimits(t *testing.T) {
	c, st := readContract(t), newStack(t)
	for _, r := range bodyRefusals {
		c.holds(st, r.status, "PUT", limitsURL, r.body)
	}
	for _, r := range limitsRefusals {
		c.holds(st, r.status, "PUT", limitsURL, r.body).refused(r.status, r.code, r.field)
	}
	for query, field := range map[string]string{
		"?limit=0": "limit", "?limit=1001": "limit", "?after=!": "after", "?by=": "by", "?by=colour": "by",
		"?by=topic&by=channel": "by", "?by=topic,topic": "by", "?after=&after=": "after", "?%zz": "",
	} {
		a := c.holds(st, 422, "GET", limitsURL+query, "")
		if got, _ := a.json()["field"].(string); got != field {
			t.Errorf("%s: field %q", query, got)
		}
	}
	c.holds(st, 422, "PUT", limitsURL, limitsOf(""), "Sendgate-Actor", strings.Repeat("x", 257))
	if a := c.holds(st, 200, "GET", limitsURL, ""); strings.TrimSpace(string(a.body)) != `{"entries":[]}` {
		t.Errorf("something was set: %s", a.body)
	}
	st.store.down.Store(true)
	c.holds(st, 503, "GET", limitsURL, "")
}
