package replay_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog"
	"github.com/sendgate/sendgate/decisionlog/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when hand-made logs begin.
const start = int64(1_780_000_000_000)

// entry is one decision of user u on push, or one outcome, at so many seconds.
type entry = decisionlog.Entry

func rolling(seconds, limit int, by ...string) decisionlog.Cap {
	c := decisionlog.Cap{Kind: "rolling", Window: sendgate.Duration(time.Duration(seconds) * time.Second), Limit: limit}
	for i := 0; i < len(by); i += 2 {
		c.By, c.Values = append(c.By, sendgate.Field(by[i])), append(c.Values, by[i+1])
	}
	return c
}

func millis(seconds float64) int64 { return start + int64(math.Round(seconds*1000)) }

func allow(seconds float64, id string, caps ...decisionlog.Cap) entry {
	return entry{
		V: 1, Kind: decisionlog.KindDecision, At: millis(seconds), User: "u", NotificationID: id, Channel: "push",
		Verdict: "allow", Caps: append([]decisionlog.Cap{}, caps...),
	}
}

// deny is denied by the caps at some places, the first by default.
func deny(seconds float64, id string, caps ...decisionlog.Cap) entry {
	e := allow(seconds, id, caps...)
	e.Verdict, e.Reason = "suppress", "frequency_cap"
	e.Caps[0].Full = true
	return e
}

func outcome(seconds float64, id, what string, named ...decisionlog.Cap) entry {
	return entry{
		V: 1, Kind: decisionlog.KindOutcome, At: millis(seconds), User: "u", NotificationID: id, Channel: "push", Outcome: what, Caps: named,
	}
}

// with changes an entry.
func with(e entry, change func(*entry)) entry {
	change(&e)
	return e
}

func held(e entry, hold time.Duration) entry {
	e.Hold = sendgate.Duration(hold)
	return e
}

func on(channel string, e entry) entry {
	e.Channel = channel
	return e
}

// replayed has entries replayed in order, and once more in a random one.
func replayed(t *testing.T, complete bool, entries ...entry) (*replay.Replay, []string) {
	t.Helper()
	run := func(order []int) (*replay.Replay, []string) {
		var found []string
		r := replay.New(replay.Options{Complete: complete, Found: func(f replay.Finding) {
			what := "under"
			if f.Over {
				what = "over"
			}
			found = append(found, fmt.Sprintf("%s %s %d/%d", what, f.NotificationID, f.Count, f.Room))
		}})
		for _, i := range order {
			if err := r.Add(&entries[i], math.MinInt64); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		return r, found
	}
	inOrder := make([]int, len(entries))
	for i := range inOrder {
		inOrder[i] = i
	}
	r, found := run(inOrder)
	// What stands within a millisecond may be found in another order.
	again, _ := run(rand.Perm(len(entries)))
	if a, b := shown(r), shown(again); a != b {
		t.Errorf("in another order:\n%s\nand not\n%s", b, a)
	}
	return r, found
}

// shown are the rows, without what is 0.
func shown(r *replay.Replay) string {
	var lines []string
	for _, row := range r.Rows() {
		line := row.Name()
		for _, f := range []struct {
			name string
			n    int64
		}{
			{"decisions", row.Decisions}, {"allows", row.Allows}, {"denials", row.Denials}, {"slots", row.Slots}, {"returned", row.Returned},
			{"over", row.Over}, {"under", row.Under}, {"unknown", row.Unknown}, {"overshoot", row.Overshoot}, {"uncapped", row.Uncapped},
		} {
			if f.n > 0 {
				line += fmt.Sprintf(" %s %d", f.name, f.n)
			}
		}
		lines = append(lines, fmt.Sprintf("%s worst %d/%d", line, row.Worst, row.WorstLimit))
	}
	return strings.Join(lines, "; ")
}
