package oracle_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// corner is a history that was written by hand, of one user at one gate.
type corner struct {
	*history
	user string
}

func newCorner(t *testing.T, c oracle.Catalog, start time.Time) *corner {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	w := newWorld(t, zones, r)
	w.setCatalog(c)
	w.moveTo(start)
	g := &generator{Rand: r, base: c, catalog: c}
	return &corner{&history{world: w, g: g, older: [2]map[string][]oracle.Consent{{}, {}}}, "u"}
}

// at is an instant of a day that is later than every world's beginning.
func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2030-06-03 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

func (c *corner) ask(id, channel string) oracle.Decision {
	c.t.Helper()
	d, _ := c.check(oracle.Check{NotificationID: id, User: c.user, Topic: "t", Channel: channel}, 0)
	return d
}

// want fails unless both sides, which agree, say what it says here.
func (c *corner) want(d oracle.Decision, verdict, reason string, when time.Time) {
	c.t.Helper()
	said := d.DeliverAt
	if said.IsZero() {
		said = d.RetryAt
	}
	if d.Verdict != verdict || d.Reason != reason || !said.Equal(when) {
		c.fail("want %s, %s, %s; got %s", verdict, reason, when.Format(stamp), show(d))
	}
}

// TestSlotThatLapsesInQuietHours: the notification holds a slot when it is
// asked about in quiet hours, and no longer does when they end; the cap has
// been lowered meanwhile, and has room later still.
func TestSlotThatLapsesInQuietHours(t *testing.T) {
	of := oracle.Category{Class: "marketing", Caps: caps(by(3, "1h", "category")), AllowedHours: []oracle.AllowedHours{{Start: "10:00", End: "08:00"}}}
	c := newCorner(t, small(of), at("07:10:00"))
	c.want(c.ask("a", "push"), "allow", "default_on", time.Time{})
	c.moveTo(at("07:50:00"))
	c.ask("b", "push")
	c.moveTo(at("07:59:00"))
	c.ask("c", "push")
	of.Caps = caps(by(1, "1h", "category"))
	of.AllowedHours[0].End = "07:30"
	of.AllowedHours[0].Start = "08:20"
	c.g.catalog = small(of)
	c.setCatalog(c.g.catalog)
	// a leaves at 08:10, b at 08:50, c at 08:59.
	c.want(c.ask("a", "push"), "defer", "quiet_hours", at("08:59:00"))
	c.moveTo(at("08:59:00"))
	c.want(c.ask("a", "push"), "allow", "default_on", time.Time{})
}

// TestBatchDatesPastItsOwnSlots: the first check of a batch fills the cap, and
// the second one, which is quiet, is dated past that.
func TestBatchDatesPastItsOwnSlots(t *testing.T) {
	of := oracle.Category{
		Class: "marketing", Caps: caps(by(1, "2h", "category")),
		AllowedHours: []oracle.AllowedHours{{Channels: []string{"sms"}, Start: "09:00", End: "20:00"}},
	}
	c := newCorner(t, small(of), at("08:30:00"))
	checks := []oracle.Check{
		{NotificationID: "a", User: c.user, Topic: "t", Channel: "push"},
		{NotificationID: "b", User: c.user, Topic: "t", Channel: "sms"},
	}
	c.askAll(0, checks, true)
	d := c.oracle.Judge(checks[1], c.exactly(), c.exactly(), false)
	c.want(d, "defer", "quiet_hours", at("10:30:00"))
}

// TestCapLeftAtZero: 0 is never, but what holds a slot is let through again
// until that lapses.
func TestCapLeftAtZero(t *testing.T) {
	of := oracle.Category{Class: "marketing", OnCap: "defer", Caps: caps(by(2, "1h", "category"))}
	c := newCorner(t, small(of), at("07:00:00"))
	c.ask("a", "push")
	of.Caps = caps(by(0, "1h", "category"))
	c.g.catalog = small(of)
	c.setCatalog(c.g.catalog)
	c.want(c.ask("a", "sms"), "allow", "default_on", time.Time{})
	c.want(c.ask("b", "push"), "defer", "frequency_cap", time.Time{})
	c.moveTo(at("08:00:00"))
	c.want(c.ask("a", "push"), "defer", "frequency_cap", time.Time{})
}
