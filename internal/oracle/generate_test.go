package oracle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// zoneNames have summer times of an hour, half an hour and two, on both sides
// of the year, none at all, odd offsets, and old names.
var zoneNames = []string{
	"UTC", "America/New_York", "US/Eastern", "Europe/Berlin", "Europe/Dublin", "Asia/Kolkata", "Asia/Calcutta",
	"Australia/Lord_Howe", "Antarctica/Troll", "America/St_Johns", "Pacific/Chatham", "Africa/Casablanca", "Africa/Cairo",
	"America/Santiago", "Asia/Beirut", "Asia/Gaza", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/Nuuk", "Etc/GMT+5",
}

var badZones = []string{"Mars/Base", "america/new_york", "GMT+5", "../UTC", "UTC ", "", "Local", "right/UTC", "posix/UTC", "localtime"}

// userNames are told apart byte for byte, or are one user where they should be
// two. %d keeps the users of histories apart.
var userNames = [][]string{
	{"u_%d", "u_%d "},
	{"a+b%d@x.io", "a b%d@x.io", "a%%2Bb%d@x.io"},
	{"a/b%d", "a%%2Fb%d", "a:b%d"},
	{"ÜSER%d", "üser%d"},
	{"{a}%d", "{a%d}", "}%d{"},
	{"~%d?x=1#y", "~%d"},
}

// generator makes up what happens in one history.
type generator struct {
	*rand.Rand
	base     oracle.Catalog
	catalog  oracle.Catalog
	users    []string
	zone     map[string]string // that a user's quiet hours were last given in
	windows  []string          // of users' own caps
	topics   []string          // that this history is mostly about
	channels []string
	ids      int // how many notifications there are
}

func newGenerator(r *rand.Rand, number int) *generator {
	g := &generator{Rand: r, base: pick(r, handMade), zone: map[string]string{}, ids: 2 + r.IntN(12)}
	for _, name := range pick(r, userNames) {
		g.users = append(g.users, fmt.Sprintf(name, number))
	}
	g.catalog = g.base
	g.topics, g.channels = slices.Sorted(maps.Keys(g.base.Topics)), slices.Clone(g.base.Channels)
	g.Shuffle(len(g.topics), func(i, j int) { g.topics[i], g.topics[j] = g.topics[j], g.topics[i] })
	g.Shuffle(len(g.channels), func(i, j int) { g.channels[i], g.channels[j] = g.channels[j], g.channels[i] })
	g.topics, g.channels = g.topics[:min(len(g.topics), 1+g.IntN(4))], g.channels[:1+g.IntN(2)]
	g.windows = []string{"1s", "2s", "5s", "60s", "1m", "1h", "24h", "1d", "2d"}
	return g
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) user() string { return pick(g.Rand, g.users) }

func (g *generator) topic() string {
	if g.chance(85) {
		return pick(g.Rand, g.topics)
	}
	return pick(g.Rand, slices.Sorted(maps.Keys(g.catalog.Topics)))
}

func (g *generator) channel() string {
	if g.chance(85) {
		return pick(g.Rand, g.channels)
	}
	return pick(g.Rand, g.catalog.Channels)
}

func (g *generator) category() string {
	if g.chance(70) {
		return g.catalog.Topics[pick(g.Rand, g.topics)].Category
	}
	return pick(g.Rand, slices.Sorted(maps.Keys(g.catalog.Categories)))
}

func (g *generator) check() oracle.Check {
	c := oracle.Check{NotificationID: fmt.Sprintf("n %d", g.IntN(g.ids)), User: g.user(), Topic: g.topic(), Channel: g.channel()}
	some := func(into *string, values ...string) {
		if g.chance(50) {
			*into = pick(g.Rand, values)
		}
	}
	some(&c.CampaignID, "c1", "c:2")
	some(&c.SenderID, "s1", "s2")
	some(&c.CreativeID, "cr")
	some(&c.HouseholdID, "{h}")
	some(&c.DeviceID, "d1", "d2")
	some(&c.Priority, "low", "normal", "high")
	if g.chance(40) {
		c.Attributes = map[string]string{"region": pick(g.Rand, []string{"eu", "us"})}
	}
	if g.chance(2) {
		g.spoil(&c)
	}
	return c
}

// spoil makes a check one that cannot be judged.
func (g *generator) spoil(c *oracle.Check) {
	switch g.IntN(4) {
	case 0:
		c.Topic = "no_such_topic"
	case 1:
		c.Channel = "pigeon"
	case 2:
		c.NotificationID = "n\u0007"
	case 3:
		c.User = "u\u007f"
	}
}

// edit makes up an edit, with something wrong in it now and then.
func (g *generator) edit(user string, now time.Time, revision int) oracle.Edit {
	var e oracle.Edit
	if g.chance(55) {
		e.Preferences = g.settings()
	}
	if g.chance(45) {
		e.Quiet = g.quiet(user, now)
	}
	if g.chance(35) {
		e.Caps = g.caps()
	}
	switch {
	case g.chance(10):
		e.IfMatch = &revision
	case g.chance(5) && g.harmless(e):
		other := revision + 1 - 2*g.IntN(2)
		e.IfMatch = &other
	}
	return e
}

// harmless tells whether an edit certainly has no fault of its own: of two
// faults of different kinds the documents do not say which one is told.
func (g *generator) harmless(e oracle.Edit) bool {
	return e.Quiet == nil && e.Preferences == nil && e.Caps == nil || e.Quiet != nil && e.Quiet.Remove && e.Preferences == nil && e.Caps == nil
}

func (g *generator) settings() (list []oracle.PreferenceEdit) {
	for range 1 + g.IntN(4) {
		e := oracle.PreferenceEdit{Topic: g.topic(), Channel: g.channel(), Enabled: oracle.Some(g.chance(75))}
		named := slices.ContainsFunc(list, func(o oracle.PreferenceEdit) bool { return o.Topic == e.Topic && o.Channel == e.Channel })
		if named && !g.chance(10) {
			continue
		}
		essential := g.catalog.Categories[g.catalog.Topics[e.Topic].Category].Class == "essential"
		switch n := g.IntN(100); {
		case n < 20:
			e.Enabled = oracle.Null[bool]()
		case n < 22:
			e.Enabled = oracle.Nullable[bool]{}
		case n < 24:
			e.Topic = "no_such_topic"
		case n < 26:
			e.Channel = "pigeon"
		case essential && n < 85:
			e.Enabled = oracle.Some(true)
		}
		list = append(list, e)
	}
	return list
}

func (g *generator) caps() (list []oracle.CapEdit) {
	for range 1 + g.IntN(2) {
		e := oracle.CapEdit{Category: g.category(), Window: pick(g.Rand, g.windows), MaxCount: oracle.Some(g.IntN(5))}
		for tries := 0; g.catalog.Categories[e.Category].UserCaps == nil && tries < 20; tries++ {
			e.Category = g.category()
		}
		switch n := g.IntN(100); {
		case n < 25:
			e.MaxCount = oracle.Null[int]()
		case n < 27:
			e.MaxCount = oracle.Some(-1)
		case n < 29:
			e.MaxCount = oracle.Some(1000)
		case n < 31:
			e.MaxCount = oracle.Nullable[int]{}
		case n < 33:
			e.Window = pick(g.Rand, []string{"0s", "32d", "1w", "90", "1h30m"})
		case n < 35:
			e.Category = "no_such_category"
		}
		length, ok := oracle.Length(e.Window)
		named := slices.ContainsFunc(list, func(o oracle.CapEdit) bool {
			other, _ := oracle.Length(o.Window)
			return o.Category == e.Category && other == length
		})
		if !named || ok && g.chance(10) {
			list = append(list, e)
		}
	}
	return list
}

func (g *generator) unsubscribe(user string) oracle.Unsubscribe {
	b := oracle.Unsubscribe{User: user, Reason: pick(g.Rand, []string{"user_requested", "gdpr_request", "account_deletion", "operator_block"})}
	if g.chance(40) {
		retain := g.chance(60)
		b.RetainEssential = &retain
	}
	if g.chance(40) {
		b.Source = "operator"
		if b.Reason != "operator_block" && g.chance(50) {
			b.Source = "user"
		}
	}
	if g.chance(3) {
		b.Reason = pick(g.Rand, []string{"", "boredom"})
	} else if g.chance(3) {
		b.Source = "nobody"
	}
	return b
}

func (g *generator) resubscribe(user string) oracle.Unsubscribe {
	b := oracle.Unsubscribe{User: user, Reason: pick(g.Rand, []string{"user_requested", "operator_block", "changed their mind"})}
	if g.chance(60) {
		b.Source = pick(g.Rand, []string{"user", "operator"})
	}
	return b
}
