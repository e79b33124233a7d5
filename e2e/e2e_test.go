package e2e_test

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/keyspace"
)

const partitions = keyspace.DefaultPartitions

var seed = flag.Uint64("e2e.seed", 1, "of the population and of what is asked; another one makes another test")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEndToEnd runs everything at once: what one part leaves behind is what the
// next one meets.
func TestEndToEnd(t *testing.T) {
	t.Cleanup(client.CloseIdleConnections)
	began := time.Now()
	lap := func(what string) { t.Logf("%5.0f s  %s", time.Since(began).Seconds(), what) }

	f := newFleet(t)
	lap("the programs are built, the engines run")
	w := newWorld(t, *seed)
	checks := w.mix("n", asked, usual)
	f.load(w)
	lap("the population is made up and loaded")
	f.configure(map[string]any{"max_false_positive": 1e-9, "aim_false_positive": 1e-9, "verify_sample": 0})
	f.startGate()
	f.startGate()
	f.build().Wait()
	f.awaitGeneration(0)
	lap("the first filter is built and loaded")

	s := w.stream(f.gates, false)
	s.askers = 1 // the store that dynalite is reads a thousand records a second
	s.send(checks)
	s.end(t, "the usual mix, looked at, with a cold cache")
	lap("looked at")
	testCommands(t, f, w, checks)
	lap("counted")
	second := testRebuild(t, f, w, checks)
	lap("rebuilt")
	testPropagation(t, f, w)
	lap("timed")
	testNewGate(t, f, w, second)
	lap("a new gate asked")
	f.stopGates()
	testStatedRate(t, f, w)
	lap("run again at the stated rate")
	f.stopGates()
}
