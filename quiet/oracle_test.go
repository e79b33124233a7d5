package quiet

import (
	"fmt"
	"testing"
	"time"
)

const minutesPerWeek = 7 * minutesPerDay

// weekTable is the slow and obvious form of some hours: for each minute of the
// week, Sunday first, whether it is quiet. It shares no code with the package.
type weekTable [minutesPerWeek]bool

func tableOf(h Hours) *weekTable {
	var quiet, allowed weekTable
	for _, w := range h.Quiet {
		quiet.paint(w)
	}
	for _, w := range h.Allowed {
		allowed.paint(w)
	}
	for m := range quiet {
		if len(h.Allowed) > 0 && !allowed[m] {
			quiet[m] = true
		}
	}
	return &quiet
}

func (q *weekTable) paint(w Window) {
	length := int(w.End) - int(w.Start)
	if length < 0 {
		length += minutesPerDay
	}
	for day := range 7 {
		if w.Days != 0 && w.Days>>day&1 == 0 {
			continue
		}
		for m := range length {
			q[(day*minutesPerDay+int(w.Start)+m)%minutesPerWeek] = true
		}
	}
}

// minuteOfWeek reads the wall clock at an instant.
func minuteOfWeek(loc *time.Location, at time.Time) int {
	local := at.In(loc)
	hour, minute, _ := local.Clock()
	return int(local.Weekday())*minutesPerDay + hour*60 + minute
}

// checkFirst asks for the next opening and then watches the clock go there: each
// second of the first and the last stretch `near`, and each minute between.
func checkFirst(t *testing.T, h Hours, z *Zone, at time.Time, near time.Duration) {
	t.Helper()
	table := tableOf(h)
	quietAt := func(u time.Time) bool { return table[minuteOfWeek(z.location, u)] }

	open, ok := h.NextOpen(at, z)
	what := func() string {
		return fmt.Sprintf("%+v in %s at %s: open %s, %t", h, z.Name(),
			at.UTC().Format(time.RFC3339Nano), open.UTC().Format(time.RFC3339Nano), ok)
	}
	end := open
	if !ok {
		end = at.Add(Horizon)
	}
	switch {
	case ok && open.Before(at):
		t.Fatalf("%s: opens in the past", what())
	case ok && open.Sub(at) > Horizon:
		t.Fatalf("%s: opens past the horizon", what())
	case ok && quietAt(open):
		t.Fatalf("%s: still quiet then", what())
	case !ok && quietAt(end) != true:
		t.Fatalf("%s: open at the horizon", what())
	}
	if again, okAgain := h.NextOpen(open, z); ok && (!okAgain || !again.Equal(open)) {
		t.Fatalf("%s: asked again it says %s, %t", what(), again, okAgain)
	}
	for u := at; u.Before(end); {
		if !quietAt(u) {
			t.Fatalf("%s: open at %s", what(), u.UTC().Format(time.RFC3339Nano))
		}
		if u.Sub(at) < near || end.Sub(u) <= near+time.Minute {
			u = u.Truncate(time.Second).Add(time.Second)
		} else {
			u = u.Add(time.Minute)
		}
	}
}

func mustWindow(tb testing.TB, start, end string, days ...string) Window {
	tb.Helper()
	w, err := NewWindow(start, end, days)
	if err != nil {
		tb.Fatalf("window %s to %s on %v: %v", start, end, days, err)
	}
	return w
}

func mustZone(tb testing.TB, name string) *Zone {
	tb.Helper()
	z, err := LoadZone(name)
	if err != nil {
		tb.Fatal(err)
	}
	return z
}

func mustTime(tb testing.TB, s string) time.Time {
	tb.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		tb.Fatal(err)
	}
	return at
}
