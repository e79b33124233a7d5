package oracle_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/internal/oracle"
)

// How many histories there are, in all, under the race detector, which makes
// them ten times as slow, and with -short; and how many of them share a world.
const (
	histories      = 10_000
	raceHistories  = 1_000
	shortHistories = 500
	perWorld       = 125
)

var seed = flag.Uint64("oracle.seed", 1, "of the random histories; another one makes other histories")

// zones are those of the product's own database, read by the standard library.
var zones *oracle.Zones

func TestMain(m *testing.M) {
	archive, err := os.ReadFile("../../quiet/zoneinfo.zip")
	if err == nil {
		zones, err = oracle.NewZones(archive)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// tally is what all worlds together saw.
type tally struct {
	mu     sync.Mutex
	seen   map[string]int
	worlds int // fewer where only one was asked for
}

func (t *tally) add(saw map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.worlds++
	for what, n := range saw {
		t.seen[what] += n
	}
}

// TestHistories lives through random histories at two gates, and wants every
// verdict, reason, instant, count, document and refusal to be the oracle's.
func TestHistories(t *testing.T) {
	// Ten thousand histories make much garbage and keep nothing.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	worlds := histories / perWorld
	switch {
	case testing.Short():
		worlds = shortHistories / perWorld
	case underRace:
		worlds = raceHistories / perWorld
	}
	all := tally{seen: map[string]int{}}
	passed := t.Run("all", func(t *testing.T) {
		for n := range worlds {
			t.Run(fmt.Sprintf("world%d", n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, zones, rand.New(rand.NewPCG(*seed, uint64(n))))
				for i := range perWorld {
					w.runHistory(i)
				}
				all.add(w.saw)
			})
		}
	})
	for _, what := range slices.Sorted(maps.Keys(all.seen)) {
		t.Logf("%8d %s", all.seen[what], what)
	}
	if passed && all.worlds == worlds {
		all.wantVariety(t)
	}
}

// wantVariety fails if something that can be answered never was: histories
// that miss it show nothing.
func (t *tally) wantVariety(test *testing.T) {
	for _, what := range []string{
		"allow essential", "allow opted_in", "allow default_on", "suppress global_unsubscribe", "suppress opted_out", "suppress default_off",
		"defer quiet_hours", "suppress quiet_hours", "defer frequency_cap", "suppress frequency_cap",
		"deliver_at quiet_hours", "retry_at quiet_hours", "deliver_at frequency_cap", "retry_at frequency_cap",
		"refused revision_mismatch", "refused essential_topic", "refused invalid_quiet_hours", "refused invalid_timezone",
		"refused invalid_cap", "refused duplicate_entry", "refused missing_field", "refused unknown_topic",
	} {
		if t.seen[what] == 0 {
			test.Errorf("no history had: %s", what)
		}
	}
}

// unmarshal reads an answer of which only a part matters.
func unmarshal(w *world, a answer, into any) {
	w.t.Helper()
	if err := json.Unmarshal(a.body, into); err != nil || a.status != 200 {
		w.fail("the answer is not understood: %v", err)
	}
}
