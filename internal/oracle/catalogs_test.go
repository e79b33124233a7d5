package oracle_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/internal/oracle"
)

var (
	everywhere = []string{"push", "email", "sms", "in_app"}
	smsOff     = map[string]string{"sms": "off"}
)

func caps(c ...oracle.Cap) []oracle.Cap { return c }

func by(limit int, window string, fields ...string) oracle.Cap {
	return oracle.Cap{By: append([]string{}, fields...), Window: window, Limit: limit}
}

// handMade is what histories begin with. The first is the sample, copied by
// hand from its YAML.
var handMade = []oracle.Catalog{
	{
		DefaultTimezone: "UTC", Channels: everywhere,
		Categories: map[string]oracle.Category{
			"security":      {Class: "essential"},
			"transactional": {Class: "transactional"},
			"marketing":     {Class: "marketing", Caps: caps(by(5, "24h", "category"), by(2, "24h", "campaign_id")), UserCaps: &oracle.UserCaps{Ceiling: 20}},
			"social":        {Class: "marketing", Caps: caps(by(20, "24h", "category")), UserCaps: &oracle.UserCaps{Ceiling: 50}},
		},
		Topics: map[string]oracle.Topic{
			"security_alerts": {Category: "security"},
			"order_updates":   {Category: "transactional"}, "payment_receipts": {Category: "transactional"}, "delivery": {Category: "transactional"},
			"promotions": {Category: "marketing", Channels: smsOff}, "newsletter": {Category: "marketing", Channels: smsOff},
			"product_news": {Category: "marketing", Channels: smsOff}, "recommendations": {Category: "marketing", Channels: smsOff},
			"social_mentions": {Category: "social"}, "friend_activity": {Category: "social"},
		},
	},
	{ // what is full is deferred, what is quiet suppressed; small caps of several levels
		DefaultTimezone: "Europe/Berlin", Channels: []string{"push", "sms"},
		Categories: map[string]oracle.Category{
			"alerts": {Class: "essential"},
			"digest": {
				Class: "marketing", InQuietHours: "suppress", OnCap: "defer", UserCaps: &oracle.UserCaps{Ceiling: 4},
				Caps: caps(by(2, "1m"), by(3, "1h", "category", "channel"), by(4, "2d", "category")),
			},
			"chat": {Class: "marketing", OnCap: "defer", Caps: caps(by(1, "3s", "topic")), UserCaps: &oracle.UserCaps{Ceiling: 3}},
		},
		Topics: map[string]oracle.Topic{
			"intrusion": {Category: "alerts"}, "weekly": {Category: "digest"}, "daily": {Category: "digest", Default: "off"},
			"room_a": {Category: "chat"}, "room_b": {Category: "chat", Channels: smsOff},
		},
	},
	{ // the operator's hours, on some channels and days, in each of the policies
		DefaultTimezone: "America/New_York", Channels: []string{"push", "sms", "email"},
		Categories: map[string]oracle.Category{
			"promo": {
				Class: "marketing", UserCaps: &oracle.UserCaps{Ceiling: 2}, Caps: caps(by(2, "1h", "category")),
				AllowedHours: []oracle.AllowedHours{
					{Channels: []string{"sms"}, Start: "09:00", End: "20:00"},
					{Channels: []string{"push"}, Start: "08:00", End: "12:30", Days: []string{"mon", "wed", "fri"}},
					{Channels: []string{"push"}, Start: "14:00", End: "01:30", Days: []string{"tue", "sat", "sun"}},
				},
			},
			"survey": {
				Class: "transactional", InQuietHours: "suppress", OnCap: "defer", Caps: caps(by(1, "5m", "channel")),
				AllowedHours: []oracle.AllowedHours{{Start: "10:00", End: "11:00", Days: []string{"mon"}}, {Start: "22:00", End: "02:15"}},
			},
			"rare":   {Class: "marketing", AllowedHours: []oracle.AllowedHours{{Start: "02:00", End: "02:30", Days: []string{"sun"}}}, Caps: caps(by(1, "1d"))},
			"urgent": {Class: "essential"},
		},
		Topics: map[string]oracle.Topic{
			"sale": {Category: "promo"}, "coupon": {Category: "promo", Default: "off", Channels: map[string]string{"push": "on"}},
			"nps": {Category: "survey"}, "clock_change": {Category: "rare"}, "breach": {Category: "urgent"},
		},
	},
	{ // caps by what a check may or may not carry, and caps that never let through
		DefaultTimezone: "Asia/Kolkata", Channels: []string{"push", "email"},
		Categories: map[string]oracle.Category{
			"ads": {
				Class: "marketing", UserCaps: &oracle.UserCaps{Ceiling: 6},
				Caps: caps(by(1, "10s", "campaign_id"), by(2, "15m", "topic"), by(3, "1h", "category"), by(5, "1d")),
			},
			"partner": {Class: "marketing", OnCap: "defer", Caps: caps(by(1, "30s", "sender_id", "channel"), by(2, "2h", "attributes.region"), by(4, "1d"))},
			"frozen":  {Class: "marketing", OnCap: "defer", Caps: caps(by(0, "1h", "category"), by(1, "1s"))},
			"muted":   {Class: "marketing", Caps: caps(by(0, "2s", "creative_id"), by(2, "1m", "household_id"), by(3, "1m", "device_id"))},
		},
		Topics: map[string]oracle.Topic{
			"banner": {Category: "ads"}, "video": {Category: "ads"}, "offer": {Category: "partner"}, "ice": {Category: "frozen"},
			"hush": {Category: "muted"}, "hush_more": {Category: "muted", Default: "off"},
		},
	},
	{ // transactional that keeps quiet hours and caps, in a zone with a half-hour summer time
		DefaultTimezone: "Australia/Lord_Howe", Channels: []string{"push", "sms"},
		Categories: map[string]oracle.Category{
			"orders":  {Class: "transactional", InQuietHours: "defer", Caps: caps(by(2, "4s"), by(1, "2s", "topic")), UserCaps: &oracle.UserCaps{Ceiling: 0}},
			"parcels": {Class: "transactional", Caps: caps(by(1, "2d", "topic", "channel")), UserCaps: &oracle.UserCaps{Ceiling: 10}},
			"bank":    {Class: "essential"},
			"news":    {Class: "marketing", InQuietHours: "ignore", Caps: caps(by(1, "1s", "category"), by(10, "1d", "category"))},
		},
		Topics: map[string]oracle.Topic{
			"shipped": {Category: "orders"}, "returned": {Category: "orders", Channels: smsOff}, "pickup": {Category: "parcels"},
			"balance": {Category: "bank"}, "headline": {Category: "news", Default: "off", Channels: map[string]string{"push": "on"}},
		},
	},
}

// compile is the product's reading of a catalog.
func compile(t *testing.T, c oracle.Catalog) *sendgate.Catalog {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var spec sendgate.CatalogSpec
	if err := json.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	catalog, err := sendgate.NewCatalog(spec)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return catalog
}

// TestSampleIsTheSample holds the copy against the file.
func TestSampleIsTheSample(t *testing.T) {
	got, err := json.Marshal(compile(t, handMade[0]).Spec())
	if err != nil {
		t.Fatal(err)
	}
	sample := catalogfile.Sample().Spec()
	for _, category := range sample.Categories {
		for i := range category.Caps {
			category.Caps[i].Kind = "" // rolling is what a cap is anyway
		}
	}
	want, err := json.Marshal(sample)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the copy of the sample is\n%s\nand the sample is\n%s", got, want)
	}
}

// edited is a copy of a catalog with a few of its settings changed, as an
// operator would between two reloads. Names, windows and fields stay.
func edited(base oracle.Catalog, r *rand.Rand) oracle.Catalog {
	c := base
	c.Categories, c.Topics = maps.Clone(base.Categories), maps.Clone(base.Topics)
	categories, topics := slices.Sorted(maps.Keys(c.Categories)), slices.Sorted(maps.Keys(c.Topics))
	for range 1 + r.IntN(4) {
		category, topic := pick(r, categories), pick(r, topics)
		switch r.IntN(5) {
		case 0, 1:
			c.Categories[category] = withLimits(c.Categories[category], r)
		case 2:
			of := c.Topics[topic]
			of.Default, of.Channels = pick(r, []string{"", "on", "off"}), nil
			if c.Categories[of.Category].Class == "essential" {
				of.Default = ""
			}
			c.Topics[topic] = of
		case 3:
			makeEssential(c, category)
		case 4:
			makeOrdinary(c, category, r)
		}
	}
	return c
}

func withLimits(c oracle.Category, r *rand.Rand) oracle.Category {
	c.Caps = slices.Clone(c.Caps)
	for i := range c.Caps {
		c.Caps[i].Limit = max(0, c.Caps[i].Limit+r.IntN(5)-2)
	}
	return c
}

// makeEssential marks a category, whose topics cannot be off by default then.
func makeEssential(c oracle.Catalog, category string) {
	c.Categories[category] = oracle.Category{Class: "essential"}
	for name, topic := range c.Topics {
		if topic.Category == category {
			topic.Default, topic.Channels = "", nil
			c.Topics[name] = topic
		}
	}
}

// makeOrdinary takes the mark away, or changes the policies of a category that
// has none.
func makeOrdinary(c oracle.Catalog, category string, r *rand.Rand) {
	of := c.Categories[category]
	of.Class = pick(r, []string{"marketing", "transactional"})
	of.OnCap = pick(r, []string{"", "defer", "suppress"})
	of.InQuietHours = pick(r, []string{"defer", "suppress"})
	c.Categories[category] = of
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
