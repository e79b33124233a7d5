package freqcap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/quiet"
)

// bucketsOf makes a cap of everything that counts in parts of a window.
func bucketsOf(window time.Duration, n, limit int) sendgate.BoundCap {
	c := capOf(window, limit)
	c.Kind, c.Buckets, c.Remember = sendgate.CapBuckets, n, sendgate.DefaultRemember
	return c
}

func calendarOf(p quiet.Period, zone string, limit int) sendgate.BoundCap {
	z, err := quiet.LoadZone(zone)
	if err != nil {
		panic(err)
	}
	c := capOf(0, limit)
	c.Kind, c.Period, c.Zone, c.Remember = sendgate.CapCalendar, p, z, sendgate.DefaultRemember
	return c
}

// testBuckets asks at arbitrary moments. Never are more than the limit let
// through in any rolling window; whoever is denied would have been denied by an
// exact log within the window and one part of it; and asked at ResetsAt there is
// room, and not a millisecond before.
func testBuckets(t *testing.T, client redis.UniversalClient) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 5, 24}).Draw(r, "buckets")
		width := int64(rapid.IntRange(1, 50).Draw(r, "width"))
		window := width * int64(n)
		limit := rapid.IntRange(0, 4).Draw(r, "limit")
		b, c := onTestClock(t, client), bucketsOf(time.Duration(window)*time.Millisecond, n, limit)
		now := int64(1_700_000_000_000)
		var went []int64
		within := func(length int64) (count int) {
			for _, at := range went {
				if at > now-length {
					count++
				}
			}
			return count
		}
		for i := range rapid.IntRange(1, 30).Draw(r, "asks") {
			now += int64(rapid.IntRange(0, int(window)+2).Draw(r, "passes"))
			b.at("u", now)
			got := b.charge("u", fmt.Sprint("n", i), c)
			if got.Admitted && within(window) >= limit {
				r.Fatalf("at %d: one more than %d after %v", now, limit, went)
			}
			if !got.Admitted && within(window+width) < limit {
				r.Fatalf("at %d: denied with room, after %v", now, went)
			}
			if got.Admitted {
				went = append(went, now)
			}
			if resets := got.Caps[0].ResetsAt; !got.Admitted && limit > 0 {
				b.at("u", resets.UnixMilli()-1)
				if resets.UnixMilli()-1 > now && b.judge("u", "x", false, c).Admitted {
					r.Fatalf("room before %v", resets)
				}
				b.at("u", resets.UnixMilli())
				if !b.judge("u", "x", false, c).Admitted {
					r.Fatalf("no room at %v", resets)
				}
				b.at("u", now)
			}
		}
	})
}

// Buckets take the same room whatever the limit; ids are remembered for as long
// as the cap says, whatever its window.
func testBucketsRememberIDs(t *testing.T, client redis.UniversalClient) {
	b, c := onTestClock(t, client), bucketsOf(time.Minute, 6, 2)
	c.Remember = 10 * time.Minute
	const began = int64(1_700_000_040_000) // of a bucket
	b.at("u", began)
	b.charge("u", "n1", c)
	b.at("u", began+9*60_000)
	if again := b.charge("u", "n1", c); !again.Admitted || again.Caps[0].Used != 0 {
		t.Errorf("asked again when it counts no more and is known yet: %+v", again)
	}
	b.at("u", began+10*60_000)
	if again := b.charge("u", "n1", c); !again.Admitted || again.Caps[0].Used != 1 {
		t.Errorf("asked again once it is forgotten: %+v", again)
	}
	b.wants("failed", "given_back", b.tells("n1", "", sendgate.Failed, 0))
	if used := b.judge("u", "x", false, c).Caps[0].Used; used != 0 {
		t.Errorf("%d are used once it was given back", used)
	}
}

// A day in New York in which the clocks go forward has 23 hours, one in which
// they go back 25; a week begins on Monday, a month on its first.
func testCalendar(t *testing.T, client redis.UniversalClient) {
	for _, c := range []struct {
		period   quiet.Period
		zone     string
		at, ends string
	}{
		{quiet.Day, "America/New_York", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{quiet.Day, "America/New_York", "2026-03-09T03:59:59Z", "2026-03-09T04:00:00Z"},
		{quiet.Day, "America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{quiet.Day, "Asia/Kathmandu", "2026-11-30T18:14:59Z", "2026-11-30T18:15:00Z"},
		{quiet.Week, "Europe/Berlin", "2026-12-31T12:00:00Z", "2027-01-03T23:00:00Z"},
		{quiet.Month, "UTC", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
	} {
		b, one := onTestClock(t, client), calendarOf(c.period, c.zone, 1)
		at, ends := parse(t, c.at), parse(t, c.ends)
		b.SetNow(func() time.Time { return at.Add(10 * time.Minute) }) // the gate's clock is not Redis'
		b.at("u", at.UnixMilli())
		if a := b.charge("u", "n1", one); !a.Admitted || !a.Caps[0].ResetsAt.Equal(ends) {
			t.Errorf("%+v: %+v", c, a)
		}
		b.at("u", ends.UnixMilli()-1)
		b.SetNow(func() time.Time { return ends })
		if a := b.charge("u", "n2", one); a.Admitted || !a.Caps[0].ResetsAt.Equal(ends) {
			t.Errorf("%+v, just before it ends: %+v", c, a)
		}
		b.at("u", ends.UnixMilli())
		if a := b.charge("u", "n3", one); !a.Admitted || a.Caps[0].Used != 1 {
			t.Errorf("%+v, when it has ended: %+v", c, a)
		}
	}
}

func parse(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Somebody who moves between zones, there and back, gets one day's slots more at
// the most for it, and loses one day's at the most.
func testCalendarOfSomebodyWhoMoves(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	began := parse(t, "2026-06-10T20:00:00Z")
	asked := 0
	goes := func(hours int, zone string) bool {
		t.Helper()
		at := began.Add(time.Duration(hours) * time.Hour)
		b.SetNow(func() time.Time { return at })
		b.at("u", at.UnixMilli())
		asked++
		return b.charge("u", fmt.Sprint("n", asked), calendarOf(quiet.Day, zone, 1)).Admitted
	}
	for _, step := range []struct {
		hours int
		zone  string
		want  bool
	}{
		{0, "UTC", true},                   // the 10th
		{0, "Asia/Tokyo", true},            // where it is the 11th: one more
		{0, "UTC", false},                  // back on the 10th: none
		{1, "Pacific/Honolulu", false},     // where it is the 10th as well
		{5, "UTC", false},                  // the 11th, which Tokyo has had
		{20, "Asia/Tokyo", true},           // the 12th in Tokyo
		{21, "Pacific/Honolulu", false},    // the 11th
		{40, "Pacific/Honolulu", false},    // the 12th
		{62, "Pacific/Honolulu", true},     // the 13th
		{62, "Asia/Tokyo", false},          // the 13th
		{62 + 9, "Asia/Tokyo", true},       // the 14th
		{62 + 9, "America/Lima", false},    // the 13th
		{62 + 40, "Pacific/Midway", false}, // the 14th, which is over in Tokyo
		{62 + 50, "Pacific/Midway", true},  // the 15th
	} {
		if got := goes(step.hours, step.zone); got != step.want {
			t.Errorf("%d h later in %s: %t", step.hours, step.zone, got)
		}
	}
}

// Caps of all kinds in one ask: all or none, and all are given back.
func testKindsTogether(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	now := parse(t, "2026-06-10T20:00:00Z")
	b.SetNow(func() time.Time { return now })
	b.at("u", now.UnixMilli())
	caps := []sendgate.BoundCap{capOf(time.Hour, 3), bucketsOf(24*time.Hour, 24, 3), calendarOf(quiet.Day, "UTC", 2)}
	used := func() string {
		var all []int
		for _, s := range b.judge("u", "x", false, caps...).Caps {
			all = append(all, s.Used)
		}
		return fmt.Sprint(all)
	}
	for i, want := range []bool{true, true, false} {
		if got := b.goes(ask("u", fmt.Sprint("n", i), "push", caps...)); got != want {
			t.Errorf("ask %d: %t", i, got)
		}
	}
	b.wants("used", "[2 2 2]", used())
	b.wants("failed", "given_back", b.tells("n1", "push", sendgate.Failed, 0))
	b.wants("used", "[1 1 1]", used())
	held := ask("u", "n4", "push", caps...)
	held.Hold = time.Minute
	b.goes(held)
	b.wants("used", "[2 2 2]", used())
	b.at("u", now.Add(time.Minute).UnixMilli())
	b.wants("used", "[1 1 1]", used())
	b.wants("delivered late", "settled", b.tells("n4", "push", sendgate.Delivered, 0))
	b.wants("used", "[2 2 2]", used())
	if _, err := b.Usage(context.Background(), "", "u"); err != nil {
		t.Error(err)
	}
}

// A clock that steps back makes no room where a calendar or buckets are full, and
// begins no period anew. What had left by then does not come back: that much more
// may go, and no step is without it.
func testKindsWhenTheClockStepsBack(t *testing.T, client redis.UniversalClient) {
	midnight := parse(t, "2026-06-02T00:00:00Z").UnixMilli()
	for _, c := range []struct {
		name   string
		cap    sendgate.BoundCap
		before []int64 // when one goes before the step, from midnight
		to     int64
		want   int // go after it
	}{
		{"a calendar, over midnight", calendarOf(quiet.Day, "UTC", 2), []int64{5}, -500, 1},
		{"a full calendar, over midnight", calendarOf(quiet.Day, "UTC", 2), []int64{5, 6}, -500, 0},
		{"a calendar, to before a day that was full", calendarOf(quiet.Day, "UTC", 2), []int64{-700, -600, 5}, -500, 1},
		{"buckets, by two windows", bucketsOf(time.Minute, 1, 2), []int64{0}, -120_001, 1},
		{"full buckets, by two windows", bucketsOf(time.Minute, 6, 2), []int64{0, 1}, -120_001, 0},
		{"full buckets, by a little", bucketsOf(time.Minute, 6, 2), []int64{0, 1}, -500, 0},
		{"buckets of which one has left", bucketsOf(time.Minute, 1, 2), []int64{-120_000, 0}, -60_000, 1},
	} {
		b, asked := onTestClock(t, client), 0
		goes := func(at int64) bool {
			b.SetNow(func() time.Time { return instant(midnight + at) })
			b.at("u", midnight+at)
			asked++
			return b.goes(ask("u", fmt.Sprint("n", asked), "push", c.cap))
		}
		for _, at := range c.before {
			if !goes(at) {
				t.Errorf("%s: none goes at %d", c.name, at)
			}
		}
		went := 0
		for range 5 {
			if goes(c.to) {
				went++
			}
		}
		if went != c.want {
			t.Errorf("%s: %d more go, want %d", c.name, went, c.want)
		}
	}
}

// Once the id is forgotten, what holds it is asked afresh: a look says when.
func testAnIDThatWillBeForgotten(t *testing.T, client redis.UniversalClient) {
	noon := parse(t, "2026-06-02T12:00:00Z")
	for _, c := range []sendgate.BoundCap{calendarOf(quiet.Month, "UTC", 1), bucketsOf(24*time.Hour, 4, 1)} {
		b := onTestClock(t, client)
		c.Remember = time.Hour
		b.SetNow(func() time.Time { return noon })
		b.at("u", noon.UnixMilli())
		b.charge("u", "n", c)
		returns := parse(t, "2026-07-01T00:00:00Z")
		if c.Kind == sendgate.CapBuckets {
			returns = parse(t, "2026-06-03T18:00:00Z")
		}
		for _, reserve := range []bool{false, true} {
			s := b.judge("u", "n", reserve, c).Caps[0]
			if s.Full || !s.LapsesAt.Equal(noon.Add(time.Hour)) || !s.ReturnsAt.Equal(returns) {
				t.Errorf("%s, reserve %t: %+v", c.Kind, reserve, s)
			}
		}
		b.at("u", noon.Add(time.Hour).UnixMilli())
		if a := b.charge("u", "n", c); a.Admitted || !a.Caps[0].ResetsAt.Equal(returns) {
			t.Errorf("%s: asked again once it is forgotten: %+v", c.Kind, a)
		}
	}
}

// Where two caps count in one place and remember ids for different times, the
// longer one holds for both.
func testTheLongerMemoryHolds(t *testing.T, client redis.UniversalClient) {
	b, long, short := onTestClock(t, client), bucketsOf(24*time.Hour, 24, 1), bucketsOf(24*time.Hour, 24, 5)
	short.Remember = time.Hour
	b.at("u", 1_000_000_000)
	b.charge("u", "n", long)
	b.at("u", 1_007_200_000)
	b.charge("u", "m", short)
	if !b.judge("u", "n", false, long).Admitted {
		t.Error("an ask under the one that forgets sooner has made the other forget")
	}
}

func testPriorityKeepsTheLastSlots(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	b.at("u", 1000)
	low, high := capOf(time.Minute, 3), capOf(time.Minute, 3)
	low.Room = 2
	for i, c := range []struct {
		cap  sendgate.BoundCap
		want bool
	}{{low, true}, {low, true}, {low, false}, {high, true}, {high, false}, {low, false}} {
		if a := b.charge("u", fmt.Sprint("n", i), c.cap); a.Admitted != c.want {
			t.Errorf("ask %d: %+v", i, a)
		}
	}
}

func testTakeTheFirstThatMayGo(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	b.at("u", 1000)
	all, one := capOf(time.Minute, 100), capOf(time.Minute, 1, "campaign_id", "full")
	b.charge("u", "before", one)
	var asks []sendgate.CapAsk
	for i := range 300 {
		a := ask("u", fmt.Sprint("n", i), "push", all)
		switch i % 3 {
		case 0:
			a.Caps = append(a.Caps, one)
		case 1:
			a.Caps = nil
		}
		asks = append(asks, a)
	}
	took, passed := 0, 0
	for i, a := range b.Judge(context.Background(), asks, 3) {
		if a.Err != nil || a.Admitted && a.Passed || i%3 == 0 && (a.Admitted || a.Passed) {
			t.Fatalf("ask %d: %+v", i, a)
		}
		if a.Admitted {
			took++
		}
		if a.Passed {
			passed++
		}
	}
	if used := b.judge("u", "x", false, all).Caps[0].Used; took != 3 || passed != 197 || used != 1 {
		t.Errorf("%d were taken, %d passed, %d slots", took, passed, used)
	}
}
