package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog/refill"
	"github.com/sendgate/sendgate/decisionlog/replay"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/redistest"
)

const lasting = `
default_timezone: Europe/Berlin
channels: [push, email]
categories:
  marketing: {class: marketing, caps: [
    {by: [], window: 24h, limit: 40},
    {by: [campaign_id, channel], window: 7d, limit: 7},
    {kind: buckets, by: [sender_id], window: 24h, limit: 5},
    {kind: calendar, by: [], window: month, limit: 30},
    {subject: household_id, by: [category], window: 24h, limit: 90}]}
  brief: {class: marketing, count: on_delivery, hold: 1s, caps: [{by: [category], window: 24h, limit: 20}]}
  waiting: {class: marketing, count: on_delivery, hold: 24h, caps: [{by: [category], window: 24h, limit: 20}]}
topics:
  promotions: {category: marketing}
  brief: {category: brief}
  waiting: {category: waiting}
`

// TestRefill charges caps of all kinds, gives some slots back, loses everything,
// and counts it again from the log: the counts, and the slots, are those from
// before, however often that is done.
func TestRefill(t *testing.T) {
	for _, engine := range []struct {
		name string
		open func(testing.TB) redis.UniversalClient
	}{
		{"single", func(t testing.TB) redis.UniversalClient { return redistest.Start(t).Client() }},
		{"cluster", func(t testing.TB) redis.UniversalClient { return redistest.StartCluster(t).Client() }},
	} {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			client := engine.open(t)
			f := startFleet(t, lasting, client, client)
			caps := limiter(client, f.space)
			chargeAll(f)
			// The last of them to be allowed is the last to lapse.
			redistest.Until(t, "the brief holds end", func() bool { return used(t, caps, "u5", "category=brief") == 1 })
			before := counted(t, caps)
			r := f.replay(replay.Options{Complete: true})
			flush(t, client)
			if after := counted(t, caps); cmp.Equal(before, after) {
				t.Fatal("nothing was lost")
			}
			usage, err := caps.Usage(context.Background(), "", "u0")
			if err != nil {
				t.Fatal(err)
			}
			live, err := r.Live(usage.At)
			if err != nil {
				t.Fatal(err)
			}
			for round := range 2 {
				totals, err := refill.Run(context.Background(), refill.Options{
					Caps: caps, Patience: time.Minute, Progress: func(refill.Totals) {}, Waiting: func(err error) { t.Error(err) },
				}, live)
				known := totals.Counted
				if round == 0 {
					known = totals.Known + totals.TooOld
				}
				if err != nil || totals.Sent != len(live) || len(live) == 0 || known != 0 || totals.Overfull != 0 {
					t.Errorf("round %d: %+v of %d, %v", round, totals, len(live), err)
				}
				if diff := cmp.Diff(before, counted(t, caps)); diff != "" {
					t.Errorf("round %d (-before +after):\n%s", round, diff)
				}
			}
		})
	}
}

// chargeAll has six users of two households charged, and reports what became of
// some of it.
func chargeAll(f *fleet) {
	for i := range 90 {
		c := sendgate.Check{
			NotificationID: fmt.Sprint("n", i), User: sendgate.UserID(fmt.Sprint("u", i%6)), Topic: "promotions", Channel: []string{"push", "email"}[i/6%2],
			CampaignID: fmt.Sprint("c", i%4), SenderID: fmt.Sprint("s", i%5), HouseholdID: fmt.Sprint("h", i%2),
		}
		if i >= 60 {
			c.Topic = []string{"brief", "waiting"}[i/6%2]
		}
		for range 1 + i%2 {
			f.decide(i%2, []sendgate.Check{c}, 0)
		}
		switch {
		case i%7 == 0:
			f.settle(1, c, sendgate.Failed)
		case i%5 == 0 || i >= 84 && i%6 == 0:
			f.settle(1, c, sendgate.Delivered)
		}
	}
	late := sendgate.Outcome{Check: sendgate.Check{
		NotificationID: "unasked", User: "u0", Topic: "promotions", Channel: "push", CampaignID: "c9", SenderID: "s9", HouseholdID: "h9",
	}, Fate: sendgate.Delivered, At: time.Now().Add(-time.Second)}
	if s := f.gates[0].Settle(context.Background(), []sendgate.Outcome{late})[0]; s.Err != nil || s.Status != sendgate.StatusSettled {
		f.t.Errorf("%+v", s)
	}
}

// counted is what all subjects have been charged, by subject and counter.
func counted(t *testing.T, caps *freqcap.Limiter) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, s := range []struct {
		field sendgate.Field
		ids   []string
	}{{"", []string{"u0", "u1", "u2", "u3", "u4", "u5"}}, {"household_id", []string{"h0", "h1", "h9"}}} {
		for _, id := range s.ids {
			u, err := caps.Usage(context.Background(), s.field, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range u.Counts {
				what := fmt.Sprintf("%d of %d at %v", c.Used, c.Limit, c.Slots)
				if c.Subject != "" { // a link, whose moments count nothing
					what = fmt.Sprint(len(c.Slots))
				}
				all[fmt.Sprint(s.field, id, c.Kind, c.Span, keyedBy(&c), c.Subject, c.SubjectID)] = what
			}
		}
	}
	return all
}

func keyedBy(c *freqcap.Count) string {
	parts := make([]string, len(c.By))
	for i, f := range c.By {
		parts[i] = string(f) + "=" + c.Values[i]
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func used(t *testing.T, caps *freqcap.Limiter, user, by string) int {
	t.Helper()
	u, err := caps.Usage(context.Background(), "", user)
	if err != nil {
		t.Fatal(err)
	}
	for i := range u.Counts {
		if keyedBy(&u.Counts[i]) == by {
			return u.Counts[i].Used
		}
	}
	return 0
}

func flush(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(context.Background(), func(ctx context.Context, c *redis.Client) error { return c.FlushAll(ctx).Err() })
	} else {
		err = client.FlushAll(context.Background()).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}
