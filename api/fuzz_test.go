package api

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/limits"
)

func seeds(f *testing.F, lists ...[]refusal) {
	for _, list := range lists {
		for _, c := range list {
			f.Add([]byte(c.body))
		}
	}
}

// refusalOnly demands that an error is a refusal of the caller's, whose texts
// can be shown.
func refusalOnly(t *testing.T, err error) {
	t.Helper()
	p := problemOf(err)
	if p.Status < 400 || p.Status >= 500 {
		t.Fatalf("%d: %v", p.Status, err)
	}
	if !utf8.ValidString(p.Field) || !utf8.ValidString(p.Detail) || len(p.Field) > 1024 || len(p.Detail) > 1024 {
		t.Fatalf("%q %q", p.Field, p.Detail)
	}
}

// lenient is what a reader without scruples makes of a body. Where ours takes
// it, both must understand the same.
func lenient(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil || !utf8.Valid(data) {
		t.Fatalf("taken, though it is no JSON: %v", err)
	}
	return m
}

func FuzzCheck(f *testing.F) {
	catalog := testCatalog(f)
	seeds(f, checkRefusals, bodyRefusals)
	f.Add([]byte(checkWith("attributes", `{"region":"eu"}`)))
	f.Add([]byte(checkWith("attributes", `{}`)))
	f.Add([]byte(checkWith("attributes", `{"a":"1" , "b":"ü","a":"2"}`)))
	f.Add([]byte(checkOf("u", "promotions", "push")))
	f.Add([]byte(checkWith("priority", `"high" `)))
	f.Add([]byte(checkWith("campaign_id", "\"\x7f ü\"\t")))
	f.Add([]byte(checkWith("at", `"2026-12-01T03:00:00Z"`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := parseExplain(data); err != nil {
			refusalOnly(t, err)
		}
		c, err := decodeCheck(data)
		if plain, ok := plainCheck(data); ok {
			if diff := cmp.Diff(c, plain); diff != "" || err != nil {
				t.Fatalf("%v %s", err, diff)
			}
		}
		if err != nil {
			refusalOnly(t, err)
			return
		}
		m := lenient(t, data)
		if m["user_id"] != string(c.User) || m["topic"] != c.Topic || m["channel"] != c.Channel || m["notification_id"] != c.NotificationID {
			t.Fatalf("%v understood as %+v", m, c)
		}
		if err := c.Validate(catalog); err != nil {
			refusalOnly(t, err)
		}
	})
}

func FuzzBatch(f *testing.F) {
	seeds(f, bodyRefusals)
	for _, c := range checkRefusals {
		f.Add([]byte(`{"checks":[` + c.body + `,` + checkOf("u", "promotions", "push") + `],"reserve":false}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := parseBatch(data)
		if err != nil {
			refusalOnly(t, err)
			return
		}
		items := lenient(t, data)["checks"].([]any)
		if len(items) != len(b.checks) || len(items) > maxBatch {
			t.Fatalf("%d items became %d", len(items), len(b.checks))
		}
		for i, item := range items {
			if b.errs[i] != nil {
				refusalOnly(t, b.errs[i])
			} else if item.(map[string]any)["user_id"] != string(b.checks[i].User) {
				t.Fatalf("%v understood as %+v", item, b.checks[i])
			}
		}
	})
}

func FuzzEdit(f *testing.F) {
	seeds(f, editRefusals, bodyRefusals)
	f.Add([]byte(`{"preferences":[{"topic":"promotions","channel":"push","enabled":null}],"quiet_hours":null,"frequency_caps":[{"category":"marketing","max_count":null,"window":"24h"}],"holds":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseEdit(data, user)
		if err != nil {
			refusalOnly(t, err)
			return
		}
		m := lenient(t, data)
		var settings []any
		for _, s := range e.Settings {
			entry := map[string]any{"topic": s.Topic, "channel": s.Channel, "enabled": nil}
			if s.Enabled != nil {
				entry["enabled"] = *s.Enabled
			}
			settings = append(settings, entry)
		}
		given, _ := m["preferences"].([]any)
		if diff := cmp.Diff(given, settings); diff != "" && len(given)+len(settings) > 0 {
			t.Fatal(diff)
		}
		if len(e.Caps) > 0 && len(e.Caps) != len(m["frequency_caps"].([]any)) {
			t.Fatalf("%v understood as %+v", m, e.Caps)
		}
	})
}

func FuzzHold(f *testing.F) {
	seeds(f, bodyRefusals)
	f.Add([]byte(`{"user_id":"u_42","reason":"gdpr_request","retain_essential":false,"source":"operator"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if u, err := parseUnsubscribe(data); err != nil {
			refusalOnly(t, err)
		} else if m := lenient(t, data); m["user_id"] != string(u.User) || m["reason"] != u.Reason {
			t.Fatalf("%v understood as %+v", m, u)
		}
		if _, err := parseResubscribe(data); err != nil {
			refusalOnly(t, err)
		}
	})
}

func FuzzHeadersAndQuery(f *testing.F) {
	for _, s := range []string{`"7"`, `*`, `W/"7"`, `"7", "8"`, `,`, `after=1&limit=2`, `after=%zz`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseIfMatch(map[string][]string{"If-Match": {s}})
		if err != nil {
			refusalOnly(t, err)
		} else if !p.any {
			for _, r := range p.revisions {
				if !p.allows(r) {
					t.Fatalf("%q does not allow %d", s, r)
				}
			}
		}
		if after, limit, err := parsePage(s); err != nil {
			refusalOnly(t, err)
		} else if after < 0 || limit < 1 || limit > maxChanges {
			t.Fatalf("%q: after %d, limit %d", s, after, limit)
		}
		if _, _, limit, err := parseLimitsPage(s); err != nil {
			refusalOnly(t, err)
		} else if limit < 1 || limit > limits.MaxPage {
			t.Fatalf("%q: limit %d", s, limit)
		}
		c := &call{rawUser: s}
		if id, err := c.user(); err != nil {
			refusalOnly(t, err)
		} else if id.Validate("user_id") != nil || sendgate.UserID("") == id {
			t.Fatalf("%q is no id", id)
		}
	})
}

func FuzzLimits(f *testing.F) {
	seeds(f, bodyRefusals, limitsRefusals)
	f.Add([]byte(limitsOf(`{"window":"24h","limit":3},{"window":"7d","limit":10}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseLimits(data)
		if err != nil {
			refusalOnly(t, err)
			return
		}
		m := lenient(t, data)
		if len(e.By) != len(m["by"].([]any)) || len(e.Values) != len(m["values"].([]any)) || len(e.Limits) != len(m["limits"].([]any)) {
			t.Fatalf("%v understood as %+v", m, e)
		}
	})
}
