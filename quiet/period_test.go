package quiet

import (
	"math/rand/v2"
	"testing"
	"time"
)

func spanOf(t *testing.T, zone string, p Period, at string) Span {
	t.Helper()
	z, err := LoadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	return z.Spans(p, when)[1]
}

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		zone       string
		period     Period
		at         string
		label      int
		start, end string
	}{
		{"UTC", Day, "2026-02-28T23:59:59Z", 20260228, "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"UTC", Month, "2028-02-29T12:00:00Z", 202802, "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"UTC", Week, "2027-01-01T12:00:00Z", 202653, "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		{"UTC", Week, "2025-12-31T12:00:00Z", 202601, "2025-12-29T00:00:00Z", "2026-01-05T00:00:00Z"},
		{"UTC", Day, "1969-12-31T12:00:00Z", 19691231, "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		// 23 and 25 hours.
		{"Europe/Berlin", Day, "2026-03-29T12:00:00Z", 20260329, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"Europe/Berlin", Day, "2026-10-25T12:00:00Z", 20261025, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		// The clocks go forward at midnight: the day begins at one.
		{"America/Santiago", Day, "2026-09-06T12:00:00Z", 20260906, "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"},
		// They go back at midnight: the hour that comes twice is of the later day,
		// though the clock shows the earlier one again.
		{"America/Havana", Day, "2026-11-01T04:30:00Z", 20261101, "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"America/Santiago", Day, "2026-04-05T03:30:00Z", 20260404, "2026-04-04T03:00:00Z", "2026-04-05T04:00:00Z"},
		// Samoa went without the 30th.
		{"Pacific/Apia", Day, "2011-12-30T09:59:59Z", 20111229, "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"Pacific/Apia", Day, "2011-12-30T10:00:00Z", 20111231, "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
	} {
		got := spanOf(t, c.zone, c.period, c.at)
		start, end := got.Start.Format(time.RFC3339), got.End.Format(time.RFC3339)
		if got.Label != c.label || start != c.start || end != c.end {
			t.Errorf("%s %s at %s: %d from %s to %s, want %d from %s to %s", c.zone, c.period, c.at, got.Label, start, end, c.label, c.start, c.end)
		}
	}
}

// TestSpansFollowEachOther looks at moments of this century in all zones: the
// middle one of the three spans holds the moment, each begins where the one
// before ends, labels rise, and the clock shows a span's day, or a later one, from
// its beginning on and not a second before.
func TestSpansFollowEachOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	names := ZoneNames()
	for range 20_000 {
		name := names[rng.IntN(len(names))]
		z, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(946_684_800+rng.Int64N(50*365*86_400), 0)
		if _, change := at.In(z.location).ZoneBounds(); !change.IsZero() && rng.IntN(2) == 0 {
			at = change.Add(time.Duration(rng.IntN(7200)-3600) * time.Second)
		}
		for _, p := range []Period{Day, Week, Month} {
			s := z.Spans(p, at)
			if at.Before(s[1].Start) || !at.Before(s[1].End) || !s[0].End.Equal(s[1].Start) || !s[1].End.Equal(s[2].Start) ||
				s[0].Label >= s[1].Label || s[1].Label >= s[2].Label {
				t.Fatalf("%s %s at %s: %+v", name, p, at.UTC(), s)
			}
			if p != Day {
				continue
			}
			shows := func(at time.Time) int {
				local := at.In(z.location)
				return (local.Year()*100+int(local.Month()))*100 + local.Day()
			}
			if shows(s[1].Start) < s[1].Label || shows(s[1].Start.Add(-time.Second)) >= s[1].Label || shows(at) > s[1].Label {
				t.Fatalf("%s at %s: %+v begins when the clock shows %d, a second before %d", name, at.UTC(), s[1], shows(s[1].Start), shows(s[1].Start.Add(-time.Second)))
			}
		}
	}
}
