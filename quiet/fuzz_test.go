package quiet

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func FuzzParseTimeOfDay(f *testing.F) {
	for _, s := range []string{"00:00", "23:59", "24:00", "24:01", "7:00", "25:99", "", "07:00 ", "٠٧:٠٠"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTimeOfDay(s)
		if err == nil {
			if got < 0 || got > 1440 || got.String() != s {
				t.Errorf("%q is read as %d, which is written %s", s, got, got)
			}
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Detail == "" || len(e.Detail) > 400 {
			t.Errorf("%q: error %#v", s, err)
		}
	})
}

func FuzzLoadZone(f *testing.F) {
	for _, s := range refusedNames {
		f.Add(s[:min(len(s), 64)])
	}
	f.Add("Europe/Berlin")
	f.Add("US/Eastern")
	names := ZoneNames()
	f.Fuzz(func(t *testing.T, s string) {
		z, err := LoadZone(s)
		if _, legal := slices.BinarySearch(names, s); legal != (err == nil) {
			t.Fatalf("%q: legal is %t, error %v", s, legal, err)
		}
		if err != nil {
			wantField(t, err, "timezone")
			return
		}
		if z.Name() != s {
			t.Errorf("%q is named %q", s, z.Name())
		}
	})
}

// FuzzNextOpen asks about any hours of two quiet windows and an allowed one.
// Those that are not valid must end without a panic; for the others the answer
// must be the first open instant.
func FuzzNextOpen(f *testing.F) {
	for _, unix := range []int64{1772953200, 1793512800, 1325239200, 1861876800, 1735603200, -1, 0} {
		f.Add(uint16(unix&511), unix, uint32(500_000_000),
			int16(1320), int16(420), uint8(0), int16(120), int16(180), uint8(1), int16(-1), int16(0), uint8(0))
		f.Add(uint16(unix&511), unix, uint32(0),
			int16(0), int16(1440), uint8(2), int16(60), int16(0), uint8(9), int16(540), int16(1200), uint8(62))
	}
	names := ZoneNames()
	from, to := mustTime(f, "1850-01-01T00:00:00Z").Unix(), mustTime(f, "2300-01-01T00:00:00Z").Unix()
	f.Fuzz(func(t *testing.T, zone uint16, unix int64, nanos uint32,
		s1, e1 int16, d1 uint8, s2, e2 int16, d2 uint8, s3, e3 int16, d3 uint8,
	) {
		z := mustZone(t, names[int(zone)%len(names)])
		at := time.Unix(unix, int64(nanos%1e9)).UTC()
		h := Hours{Quiet: []Window{{TimeOfDay(s1), TimeOfDay(e1), Days(d1)}, {TimeOfDay(s2), TimeOfDay(e2), Days(d2)}}}
		if s3 >= 0 {
			h.Allowed = []Window{{TimeOfDay(s3), TimeOfDay(e3), Days(d3)}}
		}
		h.NextOpen(at, z) // as it comes, legal or not

		illegal := func(w Window) bool { return w.Validate() != nil }
		h.Quiet = slices.DeleteFunc(h.Quiet, illegal)
		h.Allowed = slices.DeleteFunc(h.Allowed, illegal)
		if unix >= from && unix < to {
			checkFirst(t, h, z, at, 2*time.Minute)
		}
	})
}
