// Package oracle is a second, slow and obvious Sendgate in memory, for tests
// alone. It is written from what the product is documented to do, imports
// nothing of it, and does everything in the most literal way: the wall clock is
// read minute by minute, a cap is a list of who came when. The test beside it
// drives two gates and the oracle through the same random histories and wants
// the same answers.
package oracle

import (
	"slices"
	"sort"
	"time"
)

// Oracle knows every user's state, and what to answer.
type Oracle struct {
	catalog Catalog
	zones   *Zones
	users   map[string]*user
}

// New makes an Oracle that knows nobody.
func New(catalog Catalog, zones *Zones) *Oracle {
	return &Oracle{catalog: catalog, zones: zones, users: map[string]*user{}}
}

// SetCatalog puts another catalog in force.
func (o *Oracle) SetCatalog(catalog Catalog) { o.catalog = catalog }

// Refusal is an answer other than 200. Every element of Codes is one fault; it
// is a code, or several with `|` between them where the documents leave open
// which.
type Refusal struct {
	Status int
	Codes  []string
}

// user is all that is known of one person.
type user struct {
	revision int
	updated  time.Time
	settings map[setting]bool
	quiet    *quietHours
	caps     map[capName]int
	holds    map[string]hold // by source
	charges  map[string][]charge
}

type setting struct{ topic, channel string }

type capName struct {
	category string
	window   time.Duration
}

type hold struct {
	reason string
	hard   bool
	at     time.Time
}

type quietHours struct {
	enabled bool
	window  *window
	zone    string
}

func (o *Oracle) user(id string) *user {
	u := o.users[id]
	if u == nil {
		u = &user{settings: map[setting]bool{}, caps: map[capName]int{}, holds: map[string]hold{}, charges: map[string][]charge{}}
		o.users[id] = u
	}
	return u
}

// Revision is a user's.
func (o *Oracle) Revision(id string) int { return o.user(id).revision }

// Forget drops everybody.
func (o *Oracle) Forget() { clear(o.users) }

// saved notes that a change was stored. Instants are whole milliseconds.
func (u *user) saved(now time.Time) {
	u.revision++
	u.updated = now.Truncate(time.Millisecond)
}

// Document is what a GET of a user's preferences says.
type Document struct {
	User              string
	Revision          int
	Preferences       []Preference
	Quiet             *Quiet
	Caps              []UserCap
	GlobalUnsubscribe bool
	Holds             []Hold
	UpdatedAt         time.Time // zero where nothing was ever stored
}

// Preference is one stored setting.
type Preference struct {
	Topic, Channel string
	Enabled        bool
}

// Quiet are the user's quiet hours. Days is empty for every day.
type Quiet struct {
	Enabled              bool
	Start, End, Timezone string
	Days                 []string
}

// UserCap is one cap of the user's own.
type UserCap struct {
	Category string
	Window   time.Duration
	MaxCount int
}

// Hold is one reason for which everything is off.
type Hold struct {
	Source, Reason  string
	RetainEssential bool
	At              time.Time
}

// Document is the user's, in a fixed order.
func (o *Oracle) Document(id string) Document {
	u := o.user(id)
	d := Document{User: id, Revision: u.revision, GlobalUnsubscribe: len(u.holds) > 0, UpdatedAt: u.updated}
	for s, on := range u.settings {
		d.Preferences = append(d.Preferences, Preference{s.topic, s.channel, on})
	}
	for c, most := range u.caps {
		d.Caps = append(d.Caps, UserCap{c.category, c.window, most})
	}
	for source, h := range u.holds {
		d.Holds = append(d.Holds, Hold{source, h.reason, !h.hard, h.at})
	}
	if q := u.quiet; q != nil {
		d.Quiet = &Quiet{Enabled: q.enabled, Timezone: q.zone}
		if w := q.window; w != nil {
			d.Quiet.Start, d.Quiet.End, d.Quiet.Days = clockText(w.start), clockText(w.end), w.dayNames()
		}
	}
	d.Sort()
	return d
}

// Sort puts a document into the fixed order, as its lists have none.
func (d *Document) Sort() {
	sort.Slice(d.Preferences, func(i, j int) bool {
		a, b := d.Preferences[i], d.Preferences[j]
		return a.Topic < b.Topic || a.Topic == b.Topic && a.Channel < b.Channel
	})
	sort.Slice(d.Caps, func(i, j int) bool {
		a, b := d.Caps[i], d.Caps[j]
		return a.Category < b.Category || a.Category == b.Category && a.Window < b.Window
	})
	sort.Slice(d.Holds, func(i, j int) bool { return d.Holds[i].Source < d.Holds[j].Source })
}

// WeekOrder puts days into the order of the week, as a document has them; all
// seven are no days. What is no day comes first, so that it is not lost.
func WeekOrder(days []string) []string {
	if len(days) == 0 || len(days) == 7 {
		return nil
	}
	sorted := slices.Clone(days)
	slices.SortFunc(sorted, func(a, b string) int { return slices.Index(dayNames[:], a) - slices.Index(dayNames[:], b) })
	return sorted
}
