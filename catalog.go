package sendgate

import (
	"maps"
	"slices"
	"time"

	"github.com/sendgate/sendgate/quiet"
)

// Catalog says which channels, categories and topics there are and what is to
// be done with each. It is validated as a whole and never changes once made: a
// reload makes a new one and swaps it in.
type Catalog struct {
	spec       CatalogSpec
	zone       *quiet.Zone
	channels   []string
	topics     map[string]*Topic
	categories map[string]*Category
}

// Spec is the catalog as the operator wrote it.
func (c *Catalog) Spec() CatalogSpec { return c.spec }

// DefaultZone is where a user lives who has not said.
func (c *Catalog) DefaultZone() *quiet.Zone { return c.zone }

// Channels lists the channels in the operator's order.
func (c *Catalog) Channels() []string { return slices.Clone(c.channels) }

// HasChannel tells whether a channel is declared.
func (c *Catalog) HasChannel(name string) bool { return slices.Contains(c.channels, name) }

// Topic finds a topic by name.
func (c *Catalog) Topic(name string) (*Topic, bool) {
	t, ok := c.topics[name]
	return t, ok
}

// Category finds a category by name.
func (c *Catalog) Category(name string) (*Category, bool) {
	cat, ok := c.categories[name]
	return cat, ok
}

// OffByDefault lists the settings that are off for users who have not said,
// ordered by topic; those of essential topics are not among them.
func (c *Catalog) OffByDefault() (off []Setting) {
	for _, name := range slices.Sorted(maps.Keys(c.topics)) {
		for _, channel := range c.channels {
			if t := c.topics[name]; !t.Category.Essential && !t.DefaultOn(channel) {
				off = append(off, Setting{name, channel})
			}
		}
	}
	return off
}

// Switchable counts what a hold switches off: the topics that are not
// essential, and their pairs of topic and channel.
func (c *Catalog) Switchable() (topics, pairs int) {
	for _, t := range c.topics {
		if !t.Category.Essential {
			topics++
		}
	}
	return topics, topics * len(c.channels)
}

// Topic is what a notification is about.
type Topic struct {
	Name     string
	Category *Category
	defaults map[string]bool // by channel, complete
}

// DefaultOn tells whether the topic is on, on a declared channel, for a user
// who has not said.
func (t *Topic) DefaultOn(channel string) bool { return t.defaults[channel] }

// Category is a policy group of topics.
type Category struct {
	Name           string
	Essential      bool // settings, ordinary holds, quiet hours and caps cannot stop it
	FilterHit      FilterHit
	InQuietHours   QuietPolicy
	OnCap          CapPolicy
	OnUnverifiable UnverifiablePolicy
	Caps           []Cap
	UserCaps       bool // users may set caps of their own, up to UserCapCeiling
	UserCapCeiling int
	// Hold is for how long an allow holds its slots unless delivery is reported.
	// Where it is 0, an allow keeps them unless it is reported to have failed.
	Hold time.Duration
	// keyedBy are the sets of fields, each sorted, that caps of users count by.
	keyedBy [][]Field
	allowed map[string][]quiet.Window // by channel
}

// Allowed lists the operator's allowed hours on a channel; none means always.
func (c *Category) Allowed(channel string) []quiet.Window { return c.allowed[channel] }

// FilterHit says what a hit in the opt-out filter does.
type FilterHit uint8

// What a hit does.
const (
	HitReject FilterHit = iota // answered in process
	HitVerify                  // the exact preference decides
)

// QuietPolicy says what quiet hours do.
type QuietPolicy uint8

// What quiet hours do.
const (
	QuietDefer QuietPolicy = iota
	QuietSuppress
	QuietIgnore
)

// CapPolicy says what a full cap does.
type CapPolicy uint8

// What a full cap does.
const (
	CapSuppress CapPolicy = iota
	CapDefer
)

// UnverifiablePolicy says what happens when something that had to be known
// could not be read.
type UnverifiablePolicy uint8

// What happens then.
const (
	UnverifiableSuppress UnverifiablePolicy = iota
	UnverifiableAllow                       // a bounded read of the store is tried first
)
