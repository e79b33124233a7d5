package replay_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog/replay"
	"github.com/sendgate/sendgate/internal/redistest"
)

var hammerFor = flag.Duration("hammer", 2*time.Second, "how long TestHammer asks")

// hammered are caps of windows so short that they roll many times over.
const hammered = `
default_timezone: Europe/Berlin
channels: [push, email]
categories:
  marketing: {class: marketing, caps: [
    {by: [], window: 1s, limit: 9},
    {by: [category], window: 2s, limit: 12, keep: {slots: 3, for: high}},
    {by: [campaign_id, channel], window: 1s, limit: 2},
    {kind: buckets, by: [sender_id], window: 1s, buckets: 10, limit: 4, remember: 2s},
    {kind: calendar, by: [creative_id], window: day, limit: 3}]}
  lapsing: {class: marketing, count: on_delivery, hold: 1s, caps: [{by: [], window: 1s, limit: 9}, {by: [category], window: 2s, limit: 6}]}
  waiting: {class: marketing, count: on_delivery, hold: 10m, caps: [{by: [], window: 1s, limit: 9}, {by: [category], window: 2s, limit: 6}]}
  shared: {class: marketing, caps: [{by: [category], window: 2s, limit: 8}, {subject: household_id, by: [], window: 1s, limit: 3}]}
topics:
  promotions: {category: marketing}
  lapsing: {category: lapsing}
  waiting: {category: waiting}
  shared: {category: shared}
`

// TestHammer has 64 callers ask four gates about one user at once, in lists and
// alone, with ids that come again, failures, deliveries and holds that lapse.
// The replay of their logs finds no cap above its limit in any window. Nor was
// anything denied that had room, where caps count for one subject alone: a short
// hold may do that to those that count for several.
func TestHammer(t *testing.T) {
	for _, c := range []struct {
		name   string
		topics []string
		exact  bool
	}{
		{"one subject", []string{"promotions", "promotions", "lapsing", "waiting"}, true},
		{"two subjects", []string{"promotions", "shared", "shared", "lapsing"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t)
			f := startFleet(t, hammered, server.Client(), server.Client(), server.Client(), server.Client())
			hammer(f, c.topics)
			var found []string
			var denials int64
			r := f.replay(replay.Options{Complete: true, Found: func(f replay.Finding) { found = append(found, fmt.Sprintf("%+v", f)) }})
			t.Log(strings.ReplaceAll(shown(r), "; ", "\n"))
			for _, row := range r.Rows() {
				if row.Over > 0 || row.Worst > row.WorstLimit || row.Overshoot > 0 {
					t.Errorf("over-delivery: %+v", row)
				}
				if c.exact && row.Kind != "buckets" && row.Under > 0 {
					t.Errorf("under-delivery: %+v", row)
				}
				denials += row.Denials
			}
			if denials == 0 {
				t.Error("no cap was ever full")
			}
			if t.Failed() {
				t.Log(strings.Join(found[:min(len(found), 20)], "\n"))
			}
		})
	}
}

func hammer(f *fleet, topics []string) {
	var callers sync.WaitGroup
	until := time.Now().Add(*hammerFor)
	for caller := range 64 {
		callers.Go(func() {
			for n := 0; time.Now().Before(until); n++ {
				gate, take := rand.IntN(len(f.gates)), 0
				checks := make([]sendgate.Check, 1+rand.IntN(3))
				if rand.IntN(4) == 0 {
					take = 1
				}
				for i := range checks {
					checks[i] = hammering(topics, fmt.Sprint(caller, "-", n, "-", i))
				}
				for _, c := range f.decide(gate, checks, take) {
					f.become(rand.IntN(len(f.gates)), c)
				}
			}
		})
	}
	callers.Wait()
}

func hammering(topics []string, id string) sendgate.Check {
	c := sendgate.Check{
		NotificationID: id, User: "u", Topic: topics[rand.IntN(len(topics))], Channel: []string{"push", "email"}[rand.IntN(2)],
		CampaignID: fmt.Sprint("c", rand.IntN(3)), SenderID: fmt.Sprint("s", rand.IntN(2)), HouseholdID: fmt.Sprint("h", rand.IntN(2)),
		CreativeID: fmt.Sprint("v", rand.IntN(50)), Priority: sendgate.Priority(rand.IntN(3) - 1),
	}
	if c.Topic == "promotions" && rand.IntN(5) == 0 { // asked again and again, by everybody, and never given back
		c.NotificationID = fmt.Sprint("again", rand.IntN(20))
	}
	return c
}

// become reports what has become of an allowed notification, of some.
func (f *fleet) become(gate int, c sendgate.Check) {
	again := strings.HasPrefix(c.NotificationID, "again")
	switch n := rand.IntN(10); {
	case again || c.Topic == "lapsing":
	case n < 2:
		f.settle(gate, c, sendgate.Failed)
	case n < 5:
		f.settle(gate, c, sendgate.Delivered)
	}
}
