package e2e_test

import (
	"maps"
	"slices"

	"github.com/sendgate/sendgate/internal/oracle"
)

// catalog is what gates and oracle go by. As JSON it is the gates' file too.
func catalog() oracle.Catalog {
	smsOff := map[string]string{"sms": "off"}
	byCategory := func(limit int) []oracle.Cap {
		return []oracle.Cap{{By: []string{"category"}, Window: "24h", Limit: limit}}
	}
	return oracle.Catalog{
		DefaultTimezone: "Europe/Berlin", Channels: []string{"push", "email", "sms", "in_app"},
		Categories: map[string]oracle.Category{
			"security":      {Class: "essential"},
			"transactional": {Class: "transactional"},
			"marketing": {
				Class: "marketing", UserCaps: &oracle.UserCaps{Ceiling: 20},
				Caps: append(byCategory(5), oracle.Cap{By: []string{"campaign_id"}, Window: "7d", Limit: 2}),
			},
			"social": {Class: "marketing", Caps: byCategory(20), UserCaps: &oracle.UserCaps{Ceiling: 50}},
			"survey": {Class: "marketing", InQuietHours: "suppress", OnCap: "defer", Caps: byCategory(1)},
		},
		Topics: map[string]oracle.Topic{
			"security_alerts": {Category: "security"},
			"order_updates":   {Category: "transactional"}, "payment_receipts": {Category: "transactional"}, "delivery": {Category: "transactional"},
			"promotions": {Category: "marketing", Channels: smsOff}, "newsletter": {Category: "marketing", Channels: smsOff},
			"product_news": {Category: "marketing", Channels: smsOff}, "recommendations": {Category: "marketing", Channels: smsOff},
			"partner_offers":  {Category: "marketing", Default: "off"},
			"social_mentions": {Category: "social"}, "friend_activity": {Category: "social"},
			"satisfaction": {Category: "survey", Channels: smsOff},
		},
	}
}

// topicsOf lists the topics of a class, in a fixed order.
func topicsOf(class string) (names []string) {
	c := catalog()
	for _, name := range slices.Sorted(maps.Keys(c.Topics)) {
		if c.Categories[c.Topics[name].Category].Class == class {
			names = append(names, name)
		}
	}
	return names
}
