package oracle_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// eachCase calls each for the lines of a golden file.
func eachCase(t *testing.T, name string, each func(line []byte)) {
	t.Helper()
	data, err := os.ReadFile("../../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) > 0 {
			n++
			each(line)
		}
	}
	if n == 0 {
		t.Fatal("no cases")
	}
}

// small is a catalog of one category.
func small(c oracle.Category) oracle.Catalog {
	return oracle.Catalog{
		DefaultTimezone: "UTC", Channels: []string{"push", "sms"},
		Categories: map[string]oracle.Category{"c": c}, Topics: map[string]oracle.Topic{"t": {Category: "c"}},
	}
}

// TestOracleQuietHours holds the oracle against answers that were made by
// reading the clock second by second.
func TestOracleQuietHours(t *testing.T) {
	eachCase(t, "quiet.jsonl", func(line []byte) {
		var c struct {
			Timezone string
			Window   struct {
				Start, End string
				Days       []string
			}
			At, Until time.Time
			Quiet     bool
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		o := oracle.New(small(oracle.Category{Class: "marketing"}), zones)
		quiet := &oracle.QuietEdit{Start: &c.Window.Start, End: &c.Window.End, Timezone: &c.Timezone, Days: oracle.Some(c.Window.Days)}
		if refusal := o.Edit("u", oracle.Edit{Quiet: quiet}, c.At); refusal != nil {
			t.Fatalf("%v: %s", refusal, line)
		}
		d := o.Judge(oracle.Check{NotificationID: "n", User: "u", Topic: "t", Channel: "push"}, c.At, c.At, true)
		if (d.Reason == "quiet_hours") != c.Quiet || !d.DeliverAt.Equal(c.Until) {
			t.Errorf("got %s: %s", show(d), line)
		}
	})
}

// TestOracleCaps holds the oracle against the golden histories of caps, a
// second for every millisecond, as a catalog has no shorter windows.
func TestOracleCaps(t *testing.T) {
	eachCase(t, "rolling-cap.jsonl", func(line []byte) {
		var c struct {
			Limit  int
			Window int `json:"window_ms"`
			Steps  []struct {
				User, Key string
				At        int `json:"at_ms"`
				Allow     bool
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		o := oracle.New(small(oracle.Category{Class: "marketing", Caps: caps(by(c.Limit, fmt.Sprintf("%ds", c.Window), "campaign_id"))}), zones)
		for i, s := range c.Steps {
			now := time.Unix(int64(s.At), 0)
			check := oracle.Check{NotificationID: fmt.Sprint(i), User: s.User, Topic: "t", Channel: "push", CampaignID: s.Key}
			if d := o.Judge(check, now, now, true); (d.Verdict == "allow") != s.Allow {
				t.Errorf("step %d: got %s: %s", i, show(d), line)
			}
		}
	})
}
