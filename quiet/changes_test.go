package quiet

import (
	"archive/zip"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// sampleHours are for the test below: edges in and beside the hours in which clocks
// change, days, allowed hours, and some that never or hardly open.
func sampleHours(t *testing.T) []Hours {
	quiet := func(ws ...Window) Hours { return Hours{Quiet: ws} }
	allowed := func(ws ...Window) Hours { return Hours{Allowed: ws} }
	return []Hours{
		quiet(mustWindow(t, "22:00", "07:00")),
		quiet(mustWindow(t, "02:00", "03:00")),
		quiet(mustWindow(t, "01:15", "02:30")),
		quiet(mustWindow(t, "23:59", "00:01")),
		quiet(mustWindow(t, "22:00", "00:00"), mustWindow(t, "00:30", "01:00")),
		quiet(mustWindow(t, "02:31", "02:30")),
		quiet(mustWindow(t, "20:00", "24:00", "sat"), mustWindow(t, "23:00", "08:00", "sun", "thu")),
		quiet(mustWindow(t, "00:00", "24:00", "fri", "sat", "sun")),
		allowed(mustWindow(t, "09:00", "20:00", "mon", "tue", "wed", "thu", "fri", "sat")),
		allowed(mustWindow(t, "02:00", "02:30", "sun")),
		allowed(mustWindow(t, "23:30", "00:30")),
		{
			[]Window{mustWindow(t, "21:00", "12:00")},
			[]Window{mustWindow(t, "22:00", "02:15"), mustWindow(t, "11:00", "13:00", "mon")},
		},
		{[]Window{mustWindow(t, "08:00", "21:00")}, []Window{mustWindow(t, "09:00", "20:00")}},
	}
}

const (
	day    = int64(secondsPerDay)
	around = day // how far before and after a change each minute is asked
)

// moment is an instant worth looking at in some zones whose clocks show the
// same from a day before it to the end of the horizon.
type moment struct {
	unix  int64
	zones []*Zone
}

// TestEveryChange asks at every minute of the days around every offset change of
// every zone in 2025 to 2027, and around the ends of two leap years, and
// compares with the first open minute on the wall clock.
//
// To be fast it shares and samples. Names with the same bytes in the database
// are one zone. Zones that show the same clock around a change share the reading
// of that clock. The first of them is asked about all sample hours at each minute
// for two hours before and after the change, and at each minute of the rest
// about every fourth of the sample hours; the others are asked at each minute for
// an hour before and after, and at each 61st minute of the rest.
func TestEveryChange(t *testing.T) {
	hours := sampleHours(t)
	tables := make([]*weekTable, len(hours))
	for i, h := range hours {
		tables[i] = tableOf(h)
	}
	moments := collectMoments(t)
	if len(moments) < 100 {
		t.Fatalf("only %d different changes were found", len(moments))
	}
	const parts = 4
	for part := range parts {
		t.Run(fmt.Sprint("part ", part), func(t *testing.T) {
			t.Parallel()
			asked := 0
			for i := part; i < len(moments); i += parts {
				asked += checkMoment(t, moments[i], hours, tables)
			}
			t.Logf("%d questions", asked)
		})
	}
}

// checkMoment returns how many questions it asked.
func checkMoment(t *testing.T, m moment, hours []Hours, tables []*weekTable) int {
	start := m.unix - around
	length := (2*around + horizonSeconds) / 60
	shown := make([]int, length+1) // what the clock shows at each minute
	for i := range shown {
		shown[i] = minuteOfWeek(m.zones[0].location, time.Unix(start+int64(i)*60, 0))
	}
	asked := 0
	next := make([]int64, length+2)
	for k, table := range tables {
		next[length+1] = forever
		for i := length; i >= 0; i-- {
			next[i] = next[i+1]
			if !table[shown[i]] {
				next[i] = i
			}
		}
		for n, z := range m.zones {
			for i := int64(0); i <= 2*around/60; i++ {
				if !sampled(i-around/60, n == 0, k) {
					continue
				}
				asked++
				checkMinute(t, hours[k], z, start, i, next[i])
			}
		}
	}
	return asked
}

// sampled reports whether the k-th hours are asked about a minute that is
// distance away from the change.
func sampled(distance int64, first bool, k int) bool {
	distance = max(distance, -distance)
	if first {
		return distance <= 120 || distance%4 == int64(k%4)
	}
	return distance <= 60 || distance%61 == 0
}

// checkMinute asks at minute i after start; the first open one is minute next.
func checkMinute(t *testing.T, h Hours, z *Zone, start, i, next int64) {
	at := time.Unix(start+i*60, 0)
	open, ok := h.NextOpen(at, z)
	if next-i > horizonSeconds/60 {
		if ok {
			t.Fatalf("%+v in %s at %s: %s, but nothing opens", h, z.Name(), at.UTC(), open.UTC())
		}
		return
	}
	if want := start + next*60; !ok || open.Unix() != want {
		t.Fatalf("%+v in %s at %s: %s, %t; want %s", h, z.Name(), at.UTC(), open.UTC(), ok, time.Unix(want, 0).UTC())
	}
	if quiet := next > i; quiet != open.After(at) {
		t.Fatalf("%+v in %s at %s: quiet is %t, but it opens at %s", h, z.Name(), at.UTC(), quiet, open.UTC())
	}
	if next > i && i%17 == 0 {
		if again, ok := h.NextOpen(open, z); !ok || !again.Equal(open) {
			t.Fatalf("%+v in %s at %s: asked again it says %s, %t", h, z.Name(), open.UTC(), again.UTC(), ok)
		}
	}
}

// collectMoments finds the changes by looking at the clock every two hours, without
// asking the zone where its changes are.
func collectMoments(t *testing.T) []moment {
	from, to := mustTime(t, "2025-01-01T00:00:00Z").Unix(), mustTime(t, "2028-01-10T00:00:00Z").Unix()
	found := map[string]*moment{}
	zones, changes := differentZones(t), 0
	for _, z := range zones {
		at := changesOf(t, z, from, to)
		changes += len(at)
		for _, leap := range []string{"2024-12-31T12:00:00Z", "2028-12-31T12:00:00Z"} {
			at = append(at, mustTime(t, leap).Unix())
		}
		for _, unix := range at {
			if unix >= to-10*day && unix < to {
				continue // the margin, which is there for the horizon
			}
			key := fmt.Sprint(unix, z.offsetAt(unix-around))
			for _, c := range changesOf(t, z, unix-around, unix+around+horizonSeconds) {
				key += fmt.Sprint(" ", c, z.offsetAt(c))
			}
			if found[key] == nil {
				found[key] = &moment{unix: unix}
			}
			found[key].zones = append(found[key].zones, z)
		}
	}
	var moments []moment
	for _, m := range found {
		moments = append(moments, *m)
	}
	slices.SortFunc(moments, func(a, b moment) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	t.Logf("%d names, %d different zones, %d changes, %d moments", len(ZoneNames()), len(zones), changes, len(moments))
	return moments
}

// differentZones returns one zone for each different content of the database.
func differentZones(t *testing.T) []*Zone {
	archive, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]uint64]bool{}
	var zones []*Zone
	for _, file := range archive.File {
		content := [2]uint64{uint64(file.CRC32), file.UncompressedSize64}
		if file.Name == factory || strings.HasSuffix(file.Name, "/") || seen[content] {
			continue
		}
		seen[content] = true
		zones = append(zones, mustZone(t, file.Name))
	}
	return zones
}

// changesOf returns the instants in (from, to] at which the offset changes. It
// would miss two changes within two hours that cancel out.
func changesOf(t *testing.T, z *Zone, from, to int64) []int64 {
	var changes []int64
	for lo := from; lo < to; {
		hi := min(lo+7200, to)
		next := hi
		if before := z.offsetAt(lo); before != z.offsetAt(hi) {
			for hi-lo > 1 {
				if mid := lo + (hi-lo)/2; z.offsetAt(mid) == before {
					lo = mid
				} else {
					hi = mid
				}
			}
			if hi%60 != 0 || before%60 != 0 || z.offsetAt(hi)%60 != 0 {
				t.Fatalf("%s at %d: not a whole minute, as this test takes it to be", z.Name(), hi)
			}
			changes = append(changes, hi)
			next = hi
		}
		lo = next
	}
	return changes
}
