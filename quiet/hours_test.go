package quiet

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestNextOpen(t *testing.T) {
	night := mustWindow(t, "22:00", "07:00")
	for _, c := range []struct {
		name  string
		zone  string
		hours Hours
		at    string
		want  string // "" for: nothing opens within the horizon
	}{
		{"no hours", "UTC", Hours{}, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"},
		{"allowed hours: before", "Europe/Berlin", Hours{Allowed: []Window{mustWindow(t, "09:00", "20:00")}},
			"2026-06-01T06:59:59Z", "2026-06-01T07:00:00Z"},
		{"allowed hours: within", "Europe/Berlin", Hours{Allowed: []Window{mustWindow(t, "09:00", "20:00")}},
			"2026-06-01T17:59:59Z", "2026-06-01T17:59:59Z"},
		{"allowed hours: the end is outside", "Europe/Berlin", Hours{Allowed: []Window{mustWindow(t, "09:00", "20:00")}},
			"2026-06-01T18:00:00Z", "2026-06-02T07:00:00Z"},
		{"allowed on weekdays, quiet at night", "UTC",
			Hours{[]Window{mustWindow(t, "20:00", "10:00")}, []Window{mustWindow(t, "09:00", "20:00", "mon", "fri")}},
			"2026-06-02T12:00:00Z", "2026-06-05T10:00:00Z"},
		{"one of two allowed windows", "UTC",
			Hours{Allowed: []Window{mustWindow(t, "18:00", "20:00"), mustWindow(t, "08:00", "09:00")}},
			"2026-06-02T09:00:00Z", "2026-06-02T18:00:00Z"},
		{"quiet windows that touch", "UTC",
			Hours{Quiet: []Window{night, mustWindow(t, "07:00", "08:00"), mustWindow(t, "07:30", "09:00")}}, "2026-06-02T01:00:00Z", "2026-06-02T09:00:00Z"},
		{"an allowed window that begins in a gap", "America/New_York", Hours{Allowed: []Window{mustWindow(t, "02:30", "04:00")}},
			"2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z"},
		{"an allowed window that comes twice", "America/New_York", Hours{Allowed: []Window{mustWindow(t, "01:00", "01:30")}},
			"2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z"},
		{"half a second before the end", "UTC", Hours{Quiet: []Window{night}}, "2026-06-02T06:59:59.5Z", "2026-06-02T07:00:00Z"},
		{"half a second after the end", "UTC", Hours{Quiet: []Window{night}}, "2026-06-02T07:00:00.5Z", "2026-06-02T07:00:00.5Z"},
		{"a nanosecond before the start", "UTC", Hours{Quiet: []Window{night}},
			"2026-06-02T21:59:59.999999999Z", "2026-06-02T21:59:59.999999999Z"},
		{"before 1970, half a second", "UTC", Hours{Quiet: []Window{night}}, "1901-06-02T06:59:59.5Z", "1901-06-02T07:00:00Z"},
		{"an offset with seconds", "Africa/Monrovia", Hours{Quiet: []Window{night}}, "1971-06-02T07:44:29Z", "1971-06-02T07:44:30Z"},
		{"the last day of a leap year", "America/New_York", Hours{Quiet: []Window{mustWindow(t, "18:00", "17:00")}},
			"2028-12-31T12:00:00Z", "2028-12-31T22:00:00Z"},
		{"over the end of a leap year", "America/New_York", Hours{Quiet: []Window{mustWindow(t, "18:00", "17:00")}},
			"2028-12-30T23:00:00Z", "2028-12-31T22:00:00Z"},
		{"a date that was skipped", "Pacific/Apia",
			Hours{Quiet: []Window{mustWindow(t, "00:00", "24:00", "thu", "fri")}}, "2011-12-29T12:00:00Z", "2011-12-30T10:00:00Z"},

		{"exactly at the horizon", "Pacific/Apia", Hours{Allowed: []Window{mustWindow(t, "12:00", "12:01", "fri")}},
			"2011-12-28T22:00:00Z", "2012-01-05T22:00:00Z"},
		{"a moment past the horizon", "Pacific/Apia", Hours{Allowed: []Window{mustWindow(t, "12:00", "12:01", "fri")}},
			"2011-12-28T21:59:59.999999999Z", ""},

		{"one minute a week", "UTC", Hours{Allowed: []Window{mustWindow(t, "12:00", "12:01", "mon")}},
			"2026-06-01T12:01:00Z", "2026-06-08T12:00:00Z"},
		{"one minute a week, and that is skipped", "America/New_York",
			Hours{Allowed: []Window{mustWindow(t, "02:00", "02:01", "sun")}}, "2026-03-01T08:00:00Z", ""},
		{"quiet and allowed are the same", "Europe/Berlin",
			Hours{[]Window{mustWindow(t, "08:00", "21:00")}, []Window{mustWindow(t, "09:00", "20:00")}}, "2026-06-01T12:00:00Z", ""},
		{"two halves", "Europe/Berlin", Hours{Quiet: []Window{mustWindow(t, "12:00", "00:00"), mustWindow(t, "00:00", "12:00")}},
			"2026-06-01T12:00:00Z", ""},
		{"allowed only on a day that is quiet", "Asia/Tokyo",
			Hours{[]Window{mustWindow(t, "00:00", "24:00", "sat", "sun")}, []Window{mustWindow(t, "10:00", "11:00", "sat")}},
			"2026-06-01T12:00:00Z", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, z := mustTime(t, c.at), mustZone(t, c.zone)
			open, ok := c.hours.NextOpen(at, z)
			if ok != (c.want != "") || ok && !open.Equal(mustTime(t, c.want)) {
				t.Errorf("%s, %t; want %q", open.Format(time.RFC3339Nano), ok, c.want)
			}
			checkFirst(t, c.hours, z, at, 10*time.Minute)
		})
	}
}

func TestNextOpenKeepsLocation(t *testing.T) {
	h := Hours{Quiet: []Window{mustWindow(t, "22:00", "07:00")}}
	there := time.FixedZone("there", 3*60*60)
	for _, s := range []string{"2026-01-01T12:00:00Z", "2026-01-01T23:00:00Z"} {
		open, _ := h.NextOpen(mustTime(t, s).In(there), mustZone(t, "UTC"))
		if open.Location() != there {
			t.Errorf("at %s: location %s", s, open.Location())
		}
	}
}

// TestStepsAreBounded walks through hours that never open, with as many edges as
// a careless caller could have.
func TestStepsAreBounded(t *testing.T) {
	var quarters, gaps []Window
	for q := range TimeOfDay(24 * 4) {
		quarters = append(quarters, Window{q * 15, q*15 + 15, 0})
	}
	for h := range TimeOfDay(24) {
		gaps = append(gaps, Window{h * 60, h*60 + 30, 0}, Window{h*60 + 30, h*60 + 60, 1 << (h % 7)})
	}
	for name, h := range map[string]Hours{
		"each quarter":       {Quiet: quarters},
		"half the time":      {Quiet: gaps, Allowed: []Window{{0, 30, 0}}},
		"two halves":         {Quiet: []Window{{0, 720, 0}, {720, 0, 0}}},
		"allowed never":      {Allowed: []Window{{600, 600, 0}}},
		"allowed on no day":  {Allowed: []Window{{600, 660, 1 << 7}}},
		"values off the day": {Quiet: []Window{{-2000, 3000, 0}, {3000, -2000, 0}}, Allowed: []Window{{2000, 1000, 0}}},
	} {
		windows := len(h.Quiet) + len(h.Allowed)
		for _, zone := range []string{"UTC", "America/New_York", "Pacific/Apia", "Africa/Casablanca"} {
			for _, s := range []string{"2011-12-29T00:00:00Z", "2026-03-05T00:00:00Z", "2028-12-28T00:00:00Z"} {
				first := mustTime(t, s).Unix()
				w := newWalk(h, mustZone(t, zone), first)
				steps := 0
				for ; w.unix-first <= horizonSeconds && w.wait() > 0; steps++ {
					before := w.unix
					if w.advance(w.wait()); w.unix <= before {
						t.Fatalf("%s in %s: stands still at %d", name, zone, before)
					}
				}
				if most := 18*windows + 5; steps > most {
					t.Errorf("%s in %s at %s: %d steps, at most %d were expected", name, zone, s, steps, most)
				}
				if _, ok := h.NextOpen(mustTime(t, s), mustZone(t, zone)); ok {
					t.Errorf("%s in %s at %s opens", name, zone, s)
				}
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	h := Hours{[]Window{mustWindow(t, "22:00", "07:00")}, []Window{mustWindow(t, "09:00", "20:00", "mon", "tue")}}
	z := mustZone(t, "America/New_York")
	for _, s := range []string{"2026-06-02T15:00:00Z", "2026-06-03T15:00:00Z", "2026-03-08T05:00:00Z"} {
		at := mustTime(t, s)
		if n := testing.AllocsPerRun(100, func() { h.NextOpen(at, z) }); n != 0 {
			t.Errorf("at %s: %v allocations", s, n)
		}
	}
}

// TestRandomHours checks random hours at random instants, half of them beside
// an offset change, from the time before standard time to past the end of the
// changes that the database lists one by one. The seed is fixed.
func TestRandomHours(t *testing.T) {
	rng := rand.New(rand.NewPCG(2026, 8))
	names := ZoneNames()
	from, to := mustTime(t, "1880-01-01T00:00:00Z").Unix(), mustTime(t, "2120-01-01T00:00:00Z").Unix()
	for range 300 {
		z := mustZone(t, names[rng.IntN(len(names))])
		at := time.Unix(from+rng.Int64N(to-from), rng.Int64N(1e9)*rng.Int64N(2)).UTC()
		if _, change := at.In(z.location).ZoneBounds(); !change.IsZero() && rng.IntN(2) == 0 {
			at = change.Add(time.Duration(rng.Int64N(int64(48*time.Hour))) - 36*time.Hour).UTC()
		}
		checkFirst(t, randomHours(rng), z, at, 10*time.Minute)
	}
}

func randomHours(rng *rand.Rand) Hours {
	var h Hours
	for range 1 + rng.IntN(3) {
		h.Quiet = append(h.Quiet, randomWindow(rng))
	}
	for range rng.IntN(3) {
		h.Allowed = append(h.Allowed, randomWindow(rng))
	}
	return h
}

func randomWindow(rng *rand.Rand) Window {
	for {
		w := Window{TimeOfDay(rng.IntN(minutesPerDay)), TimeOfDay(rng.IntN(minutesPerDay + 1)), 0}
		if rng.IntN(2) == 0 {
			w.Days = Days(rng.IntN(int(allDays) + 1))
		}
		if w.Validate() == nil {
			return w
		}
	}
}

// TestFarTimes shows only that times beyond all calendars end without a panic.
func TestFarTimes(t *testing.T) {
	h := Hours{Quiet: []Window{mustWindow(t, "22:00", "07:00")}, Allowed: []Window{mustWindow(t, "09:00", "10:00", "mon")}}
	for _, unix := range []int64{math.MinInt64, math.MinInt64 + 1, -1 << 60, 1 << 60, math.MaxInt64 - 1, math.MaxInt64} {
		for _, zone := range []string{"UTC", "America/New_York", "Africa/Casablanca", "Etc/GMT+12"} {
			h.NextOpen(time.Unix(unix, 0), mustZone(t, zone))
		}
	}
	h.NextOpen(time.Time{}, mustZone(t, "America/New_York"))
}
