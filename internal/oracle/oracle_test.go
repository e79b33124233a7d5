package oracle_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/internal/oracle"
)

// How many histories there are, in all and with -short, and how many of them
// share a world.
const (
	histories      = 10_000
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

// TestHistories lives through random histories at two gates, and wants every
// verdict, reason, instant, count, document and refusal to be the oracle's.
func TestHistories(t *testing.T) {
	worlds := histories / perWorld
	if testing.Short() {
		worlds = shortHistories / perWorld
	}
	for n := range worlds {
		t.Run(fmt.Sprintf("world%d", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, zones, rand.New(rand.NewPCG(*seed, uint64(n))))
			for i := range perWorld {
				w.runHistory(i)
			}
		})
	}
}

// unmarshal reads an answer of which only a part matters.
func unmarshal(w *world, a answer, into any) {
	w.t.Helper()
	if err := json.Unmarshal(a.body, into); err != nil || a.status != 200 {
		w.fail("the answer is not understood: %v", err)
	}
}
