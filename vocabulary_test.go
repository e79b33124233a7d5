package sendgate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
)

func TestUserIDs(t *testing.T) {
	for _, id := range []string{"u", "a+b@x.io", "a b@x.io", "a%2Bb@x.io", "a:b", "{a}", "a/b", "a%2Fb", "ÜSER", " ", strings.Repeat("x", 256), "\U0001F514", "\uFFFD"} {
		if err := sendgate.UserID(id).Validate("user_id"); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", 257), "a\x00b", "a\nb", "a\x7fb", "a\u0085b", "a\xffb", "\xed\xa0\x80"} {
		err := sendgate.UserID(id).Validate("user_id")
		if err == nil || err.Code != sendgate.CodeInvalidUserID || err.Field != "user_id" {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"1s": time.Second, "90s": 90 * time.Second, "15m": 15 * time.Minute, "24h": 24 * time.Hour, "7d": 168 * time.Hour} {
		d, err := sendgate.ParseDuration(text)
		if err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(d), err)
		}
	}
	for text, want := range map[string]string{"60s": "1m", "90s": "90s", "1d": "24h", "36h": "36h", "48h": "2d", "10080m": "7d"} {
		if d, err := sendgate.ParseDuration(text); err != nil || d.String() != want {
			t.Errorf("%s is written %s (%v), not %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "s", "0s", "-1s", "+1s", "01s", "1.5h", "1h30m", "1w", "1 s", "1S", "1ms", "99999999999999999999s", "36501d"} {
		if d, err := sendgate.ParseDuration(text); err == nil {
			t.Errorf("%q is read as %v", text, d)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("24h")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := sendgate.ParseDuration(text)
		if err != nil {
			return
		}
		if again, err := sendgate.ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%q is %v, which is written %s and read as %v (%v)", text, time.Duration(d), d, again, err)
		}
	})
}

func TestUsersCaps(t *testing.T) {
	catalog, err := catalogfile.Parse("t", []byte(`
default_timezone: UTC
channels: [push]
categories:
  c:
    class: marketing
    caps:
      - {by: [category], window: 24h, limit: 5}
      - {by: [category, channel], window: 1h, limit: 1}
    user_caps: {ceiling: 20}
  closed: {class: marketing, caps: [{by: [category], window: 24h, limit: 5}]}
topics: {t: {category: c}}
`))
	if err != nil {
		t.Fatal(err)
	}
	day, hour := sendgate.Duration(24*time.Hour), sendgate.Duration(time.Hour)
	own := func(category string, window sendgate.Duration, most int) sendgate.UserCap {
		return sendgate.UserCap{Category: category, Window: window, MaxCount: most}
	}
	for _, c := range []struct {
		name     string
		category string
		own      []sendgate.UserCap
		want     []int // limits, in order
	}{
		{"none", "c", nil, []int{5, 1}},
		{"of another category", "c", []sendgate.UserCap{own("closed", day, 2)}, []int{5, 1}},
		{"in place of the category's", "c", []sendgate.UserCap{own("c", day, 12)}, []int{12, 1}},
		{"never", "c", []sendgate.UserCap{own("c", day, 0)}, []int{0, 1}},
		{"one more; a cap by channel is another counter", "c", []sendgate.UserCap{own("c", hour, 2)}, []int{5, 1, 2}},
		{"above a ceiling that was lowered", "c", []sendgate.UserCap{own("c", day, 30)}, []int{20, 1}},
		{"where users have none", "closed", []sendgate.UserCap{own("closed", day, 1)}, []int{5}},
	} {
		category, _ := catalog.Category(c.category)
		limits := []int{}
		for _, cap := range category.CapsFor(category.Caps, c.own) {
			limits = append(limits, cap.Limit)
		}
		if diff := cmp.Diff(c.want, limits); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if category.Caps[0].Limit != 5 {
			t.Fatalf("%s: the catalog was changed", c.name)
		}
	}
}

func TestCapsAreKeyedByFields(t *testing.T) {
	catalog, err := catalogfile.Parse("t", []byte(`
default_timezone: UTC
channels: [push]
categories:
  c:
    class: marketing
    caps:
      - {by: [], window: 1h, limit: 1}
      - {by: [category, topic, channel, campaign_id, sender_id, creative_id, household_id, device_id, attributes.region], window: 1h, limit: 1}
      - {by: [campaign_id], window: 1h, limit: 1}
topics: {t: {category: c}}
`))
	if err != nil {
		t.Fatal(err)
	}
	check := ask("t")
	check.CampaignID, check.SenderID, check.CreativeID, check.HouseholdID, check.DeviceID = "ca", "se", "cr", "ho", "de"
	check.Attributes = map[string]string{"region": "eu"}
	w := &world{}
	gate, _ := newGate(w, catalog, noon)
	for _, c := range []sendgate.Check{check, ask("t")} {
		if _, err := gate.Decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	var values [][]string
	for _, c := range w.asks[0].Caps {
		values = append(values, c.Values)
	}
	if diff := cmp.Diff([][]string{{}, {"c", "t", "push", "ca", "se", "cr", "ho", "de", "eu"}, {"ca"}}, values); diff != "" {
		t.Error(diff)
	}
	// A cap by a field that the check does not carry does not apply.
	if n := len(w.asks[1].Caps); n != 1 {
		t.Errorf("%d caps apply to a check without fields", n)
	}
}

func TestChecksAreValidated(t *testing.T) {
	long := strings.Repeat("x", 257)
	for _, c := range []struct {
		change func(*sendgate.Check)
		code   sendgate.Code
		field  string
	}{
		{func(c *sendgate.Check) { c.NotificationID = "" }, sendgate.CodeInvalidNotificationID, "notification_id"},
		{func(c *sendgate.Check) { c.NotificationID = "a\tb" }, sendgate.CodeInvalidNotificationID, "notification_id"},
		{func(c *sendgate.Check) { c.User = "" }, sendgate.CodeInvalidUserID, "user_id"},
		{func(c *sendgate.Check) { c.Topic = "Promotions" }, sendgate.CodeUnknownTopic, "topic"},
		{func(c *sendgate.Check) { c.Channel = "fax" }, sendgate.CodeUnknownChannel, "channel"},
		{func(c *sendgate.Check) { c.CampaignID = long }, sendgate.CodeInvalidField, "campaign_id"},
		{func(c *sendgate.Check) { c.DeviceID = "\xff" }, sendgate.CodeInvalidField, "device_id"},
		{func(c *sendgate.Check) { c.Attributes = map[string]string{"A b": "x"} }, sendgate.CodeInvalidField, "attributes.A b"},
		{func(c *sendgate.Check) { c.Attributes = map[string]string{"a": ""} }, sendgate.CodeInvalidField, "attributes.a"},
	} {
		check := ask("promotions")
		c.change(&check)
		var e *sendgate.Error
		if err := check.Validate(catalogfile.Sample()); !errors.As(err, &e) || e.Code != c.code || e.Field != c.field {
			t.Errorf("%s of %s: got %v", c.code, c.field, err)
		}
	}
}
