package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog"
	"github.com/sendgate/sendgate/decisionlog/replay"
)

var two = rolling(10, 2)

// buckets, of ten seconds, are five; ids are known for 20 s.
var buckets = decisionlog.Cap{Kind: "buckets", Window: two.Window, Buckets: 5, Remember: 2 * two.Window, Limit: 2}

func daily(zone string) decisionlog.Cap {
	return decisionlog.Cap{Kind: "calendar", Period: "day", Remember: 2 * two.Window, Zone: zone, Limit: 1}
}

// household counts for a household, and was judged at so many seconds.
func household(seconds float64) decisionlog.Cap {
	c := two
	c.Subject, c.SubjectID, c.At = "household_id", "h", millis(seconds)
	return c
}

func byV(e entry) entry { return with(e, func(e *entry) { e.User = "v" }) }

// TestHistories replays logs that were made by hand. The last ones are those of
// which less is told.
func TestHistories(t *testing.T) {
	three, low := two, two
	three.Limit, low.Kept = 3, 1
	for _, c := range []struct {
		name    string
		entries []entry
		rows    string
		found   string
	}{
		{"as it should be", []entry{allow(0, "a", two), allow(1, "b", two), deny(2, "c", two), allow(10, "c", two), deny(10.999, "d", two), allow(11, "d", two)},
			"all/10s decisions 6 allows 4 denials 2 slots 4 worst 2/2", ""},
		{"one too many", []entry{allow(0, "a", two), allow(1, "b", two), allow(9.999, "c", two)},
			"all/10s decisions 3 allows 3 slots 3 over 1 worst 3/2", "over c 2/2"},
		{"one too few", []entry{allow(0, "a", two), allow(1, "b", two), deny(10, "c", two)},
			"all/10s decisions 3 allows 2 denials 1 slots 2 under 1 worst 2/2", "under c 1/2"},
		{"an id takes one slot", []entry{allow(0, "a", two), allow(1, "a", two), on("email", allow(2, "a", two)), allow(3, "b", two), allow(4, "b", two), deny(5, "c", two)},
			"all/10s decisions 6 allows 5 denials 1 slots 2 worst 2/2", ""},
		{"and another one later", []entry{allow(0, "a", two), allow(10, "a", two), allow(11, "b", two), deny(12, "c", two)},
			"all/10s decisions 4 allows 3 denials 1 slots 3 worst 2/2", ""},
		{"given back", []entry{allow(0, "a", two), allow(1, "b", two), outcome(2, "a", "failed"), outcome(2, "a", "failed"), allow(3, "c", two), deny(4, "d", two), outcome(5, "z", "failed")},
			"all/10s decisions 4 allows 3 denials 1 slots 3 returned 1 worst 2/2", ""},
		{"not given back, for it was delivered", []entry{allow(0, "a", two), allow(1, "b", two), outcome(2, "a", "delivered"), outcome(3, "a", "failed"), allow(4, "c", two)},
			"all/10s decisions 3 allows 3 slots 3 over 1 worst 3/2", "over c 2/2"},
		{"given back, and nobody was told", []entry{allow(0, "a", two), allow(1, "b", two), outcome(2, "b", "dropped"), deny(3, "c", two)},
			"all/10s decisions 3 allows 2 denials 1 slots 2 returned 1 under 1 worst 2/2", "under c 1/2"},
		{"a failure from before it was allowed again", []entry{allow(0, "a", two), with(outcome(3, "a", "failed"), func(e *entry) { e.Happened = millis(-1) }), allow(4, "b", two), deny(5, "c", two)},
			"all/10s decisions 3 allows 2 denials 1 slots 2 worst 2/2", ""},
		{"two channels share a slot until both have failed", []entry{
			allow(0, "a", two), on("email", allow(0, "a", two)), allow(1, "b", two), outcome(2, "a", "failed"), deny(3, "c", two),
			on("email", outcome(4, "a", "failed")), allow(5, "c", two)},
			"all/10s decisions 5 allows 4 denials 1 slots 3 returned 1 worst 2/2", ""},
		{"all channels at once", []entry{allow(0, "a", two), on("email", allow(0, "a", two)), on("", outcome(1, "a", "failed")), allow(2, "b", two), allow(2, "c", two), deny(2, "d", two)},
			"all/10s decisions 5 allows 4 denials 1 slots 3 returned 1 worst 2/2", ""},
		{"held, and never delivered", []entry{held(allow(0, "a", two), 2*time.Second), allow(1, "b", two), deny(1.999, "c", two), allow(2, "c", two), deny(3, "d", two)},
			"all/10s decisions 5 allows 3 denials 2 slots 3 worst 2/2", ""},
		{"held, and delivered", []entry{held(allow(0, "a", two), 2*time.Second), allow(1, "b", two), outcome(1, "a", "delivered"), deny(3, "c", two)},
			"all/10s decisions 3 allows 2 denials 1 slots 2 worst 2/2", ""},
		{"held, and delivered late into a cap that is full", []entry{
			held(allow(0, "a", two), 2*time.Second), allow(1, "b", two), allow(3, "c", two), with(outcome(4, "a", "delivered"), func(e *entry) { e.Happened = millis(1.5) }), deny(10.9, "d", two), allow(11.5, "d", two)},
			"all/10s decisions 5 allows 4 denials 1 slots 5 overshoot 1 worst 3/2", ""},
		{"two holds of two channels", []entry{
			held(allow(0, "a", two), 2*time.Second), on("email", held(allow(1, "a", two), 2*time.Second)), allow(1, "b", two), deny(2.5, "c", two), allow(3, "c", two)},
			"all/10s decisions 5 allows 4 denials 1 slots 3 worst 2/2", ""},
		{"delivered without having been asked", []entry{outcome(0, "a", "delivered", two), outcome(1, "a", "delivered", two), allow(2, "b", two), outcome(3, "c", "delivered", two), deny(4, "d", two)},
			"all/10s decisions 2 allows 1 denials 1 slots 3 overshoot 1 worst 3/2", ""},
		{"delivered so long ago that it does not count", []entry{with(outcome(20, "a", "delivered", two), func(e *entry) { e.Happened = millis(10) }), allow(21, "b", two), allow(21, "c", two)},
			"all/10s decisions 2 allows 2 slots 2 worst 2/2", ""},
		{"a limit that changes", []entry{allow(0, "a", three), allow(1, "b", three), allow(2, "c", three), deny(10, "d", two), allow(11, "d", two), deny(11.5, "e", two), allow(11.6, "e", three)},
			"all/10s decisions 7 allows 5 denials 2 slots 5 worst 3/3", ""},
		{"slots that are kept", []entry{allow(0, "a", low), deny(1, "b", low), allow(2, "c", two), deny(3, "d", two), allow(12, "e", low), allow(13, "f", low)},
			"all/10s decisions 6 allows 4 denials 2 slots 4 over 1 worst 2/2", "over f 1/1"},
		{"never", []entry{deny(0, "a", rolling(10, 0)), allow(1, "a", rolling(10, 0))},
			"all/10s decisions 2 allows 1 denials 1 slots 1 over 1 worst 1/0", "over a 0/0"},
		{"within a millisecond, in the order that suits", []entry{deny(0, "c", two), outcome(0, "b", "failed"), allow(0, "d", two), allow(0, "a", two), allow(0, "b", two), deny(0, "e", two)},
			"all/10s decisions 5 allows 3 denials 2 slots 3 returned 1 worst 2/2", ""},
		{"within a millisecond, and there is no such order", []entry{allow(0, "a", two), allow(0, "b", two), allow(0, "c", two), deny(5, "d", rolling(10, 4))},
			"all/10s decisions 4 allows 3 denials 1 slots 3 over 1 under 1 worst 3/2", "over c 2/2, under d 3/4"},
		{"caps of several kinds, of which one is full", []entry{
			allow(0, "a", rolling(10, 1, "channel", "push", "category", "m"), rolling(60, 9)), deny(1, "b", rolling(10, 1, "category", "m", "channel", "push"), rolling(60, 9)),
			allow(1, "b", rolling(10, 1, "category", "m", "channel", "email"), rolling(60, 9))},
			"all/1m decisions 3 allows 2 slots 2 worst 2/9; category,channel/10s decisions 3 allows 2 denials 1 slots 2 worst 1/1", ""},
		{"buckets are full for longer", []entry{allow(0, "a", buckets), allow(1, "b", buckets), deny(9, "c", buckets), deny(10.5, "c", buckets), allow(12, "c", buckets)},
			"buckets all/10s/5 decisions 5 allows 3 denials 2 slots 3 under 1 worst 2/2", "under c 1/2"},
		{"buckets know an id for longer than it counts", []entry{allow(0, "a", buckets), allow(15, "a", buckets), allow(16, "b", buckets), allow(17, "c", buckets), deny(17, "d", buckets), allow(30, "a", buckets)},
			"buckets all/10s/5 decisions 6 allows 5 denials 1 slots 4 worst 2/2", ""},
		{"a subject that is judged by another clock", []entry{
			allow(0, "a", household(5)), byV(allow(2, "b", household(4.9))), byV(deny(3, "c", household(6))), byV(allow(12, "c", household(14.9))), byV(outcome(14.95, "c", "failed")), allow(12, "e", household(15))},
			"household_id:all/10s decisions 5 allows 4 denials 1 slots 4 returned 1 worst 2/2", ""},
		{"users of one subject may have the same ids", []entry{allow(0, "a", household(0)), byV(allow(1, "a", household(1))), byV(outcome(2, "a", "failed")), allow(3, "b", household(3)), deny(4, "c", household(4))},
			"household_id:all/10s decisions 4 allows 3 denials 1 slots 3 returned 1 worst 2/2", ""},
		{"uncapped", []entry{with(allow(0, "a", two), func(e *entry) { e.Kind = decisionlog.KindUncapped })},
			"all/10s uncapped 1 worst 0/0", ""},
	} {
		r, found := replayed(t, true, c.entries...)
		if rows := shown(r); rows != c.rows {
			t.Errorf("%s:\n%s\nand not\n%s", c.name, rows, c.rows)
		}
		if got := strings.Join(found, ", "); got != c.found {
			t.Errorf("%s: %q was found, and not %q", c.name, got, c.found)
		}
	}
}

// TestTheCalendar goes by the labels of the user's zone, over a night in which
// the clocks go back, and with a user who moves.
func TestTheCalendar(t *testing.T) {
	at := func(text string) float64 {
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return float64(instant.UnixMilli()-start) / 1000
	}
	berlin, york, tokyo := daily("Europe/Berlin"), daily("America/New_York"), daily("Asia/Tokyo")
	r, found := replayed(t, true,
		allow(at("2026-10-24T22:00:00Z"), "a", berlin),     // 00:00 of a day of 25 hours
		deny(at("2026-10-25T22:59:59Z"), "b", berlin),      // its last second
		allow(at("2026-10-25T23:00:00Z"), "b", berlin),     // the 26th
		deny(at("2026-10-26T03:00:00Z"), "c", york),        // the 25th there, which is over
		deny(at("2026-10-26T14:00:00Z"), "c", berlin),      //
		allow(at("2026-10-26T15:00:00Z"), "c", tokyo),      // the 27th
		allow(at("2026-10-27T14:00:00Z"), "d", tokyo),      // still
		deny(at("2026-10-27T15:00:00Z"), "e", tokyo),       // the 28th
		outcome(at("2026-10-27T15:00:01Z"), "e", "failed"), //
		outcome(at("2026-10-27T16:00:00Z"), "f", "delivered", tokyo),
		deny(at("2026-10-27T17:00:00Z"), "g", tokyo),
	)
	if got, want := shown(r), "calendar all/day decisions 9 allows 4 denials 5 slots 5 over 1 under 1 worst 2/1"; got != want {
		t.Errorf("%s\nand not\n%s", got, want)
	}
	if got, want := strings.Join(found, ", "), "over d 1/1, under e 0/1"; got != want {
		t.Errorf("%s, and not %s", got, want)
	}
}

// TestBeforeTheLogsBegin holds a denial against a cap only where the logs tell of
// all that it counts.
func TestBeforeTheLogsBegin(t *testing.T) {
	long := rolling(3600, 9)
	for _, c := range []struct {
		name     string
		complete bool
		rows     string
	}{
		{"not complete", false, "all/10s decisions 4 allows 2 denials 2 slots 2 under 1 unknown 1 worst 1/2"},
		{"complete", true, "all/10s decisions 4 allows 2 denials 2 slots 2 under 2 worst 1/2"},
	} {
		r, _ := replayed(t, c.complete, allow(0, "a", two), deny(9.999, "b", two), allow(20, "c", two), deny(29.999, "d", two))
		if got := shown(r); got != c.rows {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	r, _ := replayed(t, false, allow(0, "a", daily("UTC")), outcome(1, "a", "failed"), deny(2, "b", daily("UTC")), deny(3, "c", long))
	if got := shown(r); got != "all/1h decisions 1 denials 1 unknown 1 worst 0/0; calendar all/day decisions 2 allows 1 denials 1 slots 1 returned 1 unknown 1 worst 1/1" {
		t.Error(got)
	}
}

// TestManyUsers is about memory: what is over is forgotten on the way, and counts
// all the same.
func TestManyUsers(t *testing.T) {
	r := replay.New(replay.Options{Complete: true})
	const users = 20_000
	for i := range users {
		for n := range 3 {
			e := allow(float64(i)+float64(n)/10, string(rune('a'+n)), two)
			if n == 2 {
				e = deny(float64(i)+.3, "c", two)
			}
			e.User = sendgate.UserID(fmt.Sprint("u", i))
			if err := r.Add(&e, e.At-1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	if got, want := shown(r), "all/10s decisions 60000 allows 40000 denials 20000 slots 40000 worst 2/2"; got != want {
		t.Error(got)
	}
	if n := r.Counters(); n > 5000 {
		t.Errorf("%d counters are kept for %d users, of whom ten were within a window", n, users)
	}
}

// TestLate says what came too late to be put into its place.
func TestLate(t *testing.T) {
	r := replay.New(replay.Options{})
	for _, e := range []entry{allow(100, "a", two), allow(200, "b", two), allow(50, "c", two)} {
		if err := r.Add(&e, e.At+1); err != nil {
			t.Fatal(err)
		}
	}
	if r.Late() != 1 {
		t.Errorf("%d were late", r.Late())
	}
	from, to := r.Span()
	if from.UnixMilli() != millis(50) || to.UnixMilli() != millis(200) {
		t.Errorf("from %v to %v", from, to)
	}
}

func TestCapsThatAreNone(t *testing.T) {
	bad := two
	bad.Window = 0
	for _, kind := range []decisionlog.Kind{decisionlog.KindDecision, decisionlog.KindUncapped, decisionlog.KindOutcome} {
		r, e := replay.New(replay.Options{}), allow(0, "a", bad)
		e.Kind = kind
		if err := r.Add(&e, 0); err == nil {
			err = r.Finish()
			if err == nil {
				t.Errorf("a %s with a cap without a window was taken", kind)
			}
		}
	}
}
