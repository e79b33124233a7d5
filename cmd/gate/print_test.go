package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestACapInOneLine(t *testing.T) {
	const soon = "2026-12-01T09:30:00.000Z"
	for _, c := range []struct {
		verdict string
		cap     capState
		want    string
	}{
		{"allow", capState{By: []string{"category", "channel"}, Window: "24h", Limit: 5, Used: 1, ResetsAt: soon},
			"1 of 5 used in 24h by category, channel; the next slot comes free at " + soon},
		{"suppress", capState{Window: "24h", Limit: 3, Used: 5, ResetsAt: soon}, "5 of 3 used in 24h by everything; room again at " + soon},
		{"allow", capState{Window: "24h", Limit: 3, Used: 5, ResetsAt: soon}, "5 of 3 used in 24h by everything; the next slot comes free at " + soon},
		{"suppress", capState{Window: "24h"}, "0 of 0 used in 24h by everything"},
		{"allow", capState{Kind: "calendar", Subject: "household_id", Window: "week", Limit: 9, Used: 2},
			"2 of 9 used in the calendar's week by everything, counted for the household_id"},
		{"allow", capState{Kind: "buckets", By: []string{"topic"}, Window: "7d", Limit: 9, Kept: 2, KeptFor: "high"},
			"0 of 9 used in 7d (buckets) by topic, the last 2 kept for priority high"},
	} {
		if got := c.cap.line(c.verdict); got != c.want {
			t.Errorf("%q\nand not\n%q", got, c.want)
		}
	}
}

func TestADeferWithoutATime(t *testing.T) {
	var out bytes.Buffer
	answer := `{"notification_id":"n","verdict":"defer","reason":"frequency_cap","step":"caps","category":"c","exact":true,"caps":[{"by":[],"window":"24h","limit":0,"used":0}]}`
	if err := printDecision(&out, []byte(answer)); err != nil || !strings.Contains(out.String(), "no time is known") || !strings.Contains(out.String(), "0 of 0 used") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
