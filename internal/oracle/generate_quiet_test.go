package oracle_test

import (
	"fmt"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// quiet makes up quiet hours that have much to do with what the time is.
func (g *generator) quiet(user string, now time.Time) *oracle.QuietEdit {
	e := &oracle.QuietEdit{}
	if g.chance(10) {
		e.Remove = true
		return e
	}
	if g.zone[user] == "" || g.chance(25) {
		g.zone[user] = pick(g.Rand, zoneNames)
	}
	zone := g.zone[user]
	if g.chance(85) {
		e.Timezone = &zone
	}
	if g.chance(85) {
		local := now.In(zones.Load(zone))
		minute := local.Hour()*60 + local.Minute()
		start := minute + g.IntN(240) - 180
		length := pick(g.Rand, []int{1, 2, 30, 60, 90, 240, 600, 1439, 1 + g.IntN(1439)})
		e.Start, e.End = g.clock(start, false), g.clock(start+length, true)
	}
	if g.chance(30) {
		e.Days = g.days(now)
	}
	if g.chance(20) {
		enabled := g.chance(60)
		e.Enabled = &enabled
	}
	if g.chance(8) {
		g.spoilQuiet(e)
	}
	return e
}

func (g *generator) clock(minutes int, end bool) *string {
	minutes = (minutes%1440 + 1440) % 1440
	text := fmt.Sprintf("%02d:%02d", minutes/60, minutes%60)
	if end && minutes == 0 {
		text = "24:00"
	}
	return &text
}

// days are some, the day around now likely among them.
func (g *generator) days(now time.Time) oracle.Nullable[[]string] {
	if g.chance(15) {
		return oracle.Null[[]string]()
	}
	names := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	first := int(now.Weekday()) + 6 + g.IntN(3)
	chosen := []string{names[first%7]}
	for _, name := range names {
		if name != chosen[0] && g.chance(30) && len(chosen) < 6 {
			chosen = append(chosen, name)
		}
	}
	return oracle.Some(chosen)
}

func (g *generator) spoilQuiet(e *oracle.QuietEdit) {
	text := func(s string) *string { return &s }
	switch g.IntN(7) {
	case 0:
		e.Timezone = text(pick(g.Rand, badZones))
	case 1:
		e.Start = text(pick(g.Rand, []string{"24:00", "25:99", "7:00", "", "07:00 ", "١٢:٠٠"}))
	case 2:
		e.End = text(pick(g.Rand, []string{"24:01", "25:99", "7:00", ""}))
	case 3:
		e.Start, e.End = text("10:00"), text("10:00")
	case 4:
		e.Start, e.End, e.Days = text("00:00"), text("24:00"), oracle.Null[[]string]()
	case 5:
		e.Days = oracle.Some([]string{"mon", "tue", "mon"})
	case 6:
		e.Days = oracle.Some([]string{"Mon"})
	}
}
