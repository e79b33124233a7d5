package e2e_test

import (
	"testing"

	"github.com/sendgate/sendgate/internal/oracle"
	"github.com/sendgate/sendgate/internal/redistest"
)

// asked is how many checks the usual mix is made of, and leastInProcess the
// share of them that may not reach Redis.
const (
	asked          = 50_000 / part
	leastInProcess = 0.69
)

// testCommands counts what the usual mix costs Redis. The cache is warm and
// nothing is pending, so that a check that is not answered in process sends one
// GET for its record, and a script for its caps, which begins with a GET as well;
// gates left alone send neither. The only other script is the one by which gates
// share the sweep, which has a ZADD.
func testCommands(t *testing.T, f *fleet, w *world, checks []oracle.Check) {
	idle := f.background(t)
	t.Logf("gates that nobody asks send: %s", idle)

	before := f.commands()
	s := w.stream(f.gates, true)
	s.send(checks)
	sent := f.commands().Since(before)
	judged := sent["evalsha"] - sent["zadd"]
	records := sent["get"] - judged
	s.end(t, "the usual mix")
	t.Logf("the usual mix costs, beside the background: %s", sent.Without(idle))
	inProcess := 1 - float64(records)/float64(len(checks))
	t.Logf("%.2f %% of the checks reach no Redis command", 100*inProcess)
	if idle["get"] > 0 {
		t.Errorf("gates that nobody asks read records or judge caps: %s", idle)
	}
	if inProcess < leastInProcess {
		t.Errorf("%.2f %% of the checks reach no Redis command, want at least %.0f %%", 100*inProcess, 100*leastInProcess)
	}
	if judged > records {
		t.Errorf("more scripts than records read: %s", sent)
	}
	testOptedOut(t, f, w, idle, checks)
}

// missedOptIns is the false-positive rate of the filter of opt-ins, whatever
// the one of opt-outs has: such a hit costs a look at the record, and changes
// no verdict.
const missedOptIns = 0.001

// testOptedOut has the part that is opted out of send nothing at all, but for
// what the filter of opt-ins costs.
func testOptedOut(t *testing.T, f *fleet, w *world, idle redistest.Commands, checks []oracle.Check) {
	t.Helper()
	var optedOut []oracle.Check
	offByDefault := 0
	for _, c := range checks {
		d := w.consented(c)
		if d.Verdict != "suppress" || catalog().Categories[d.Category].Class != "marketing" {
			continue
		}
		optedOut = append(optedOut, c)
		if topic := catalog().Topics[c.Topic]; topic.Default == "off" || topic.Channels[c.Channel] == "off" {
			offByDefault++
		}
	}
	before := f.commands()
	s := w.stream(f.gates, true)
	s.send(optedOut)
	more := f.commands().Since(before).Without(idle)
	s.end(t, "the part of it that is opted out of")
	records, most := more["get"], mostOf(offByDefault, missedOptIns, certainty)
	t.Logf("it costs %d reads of a record, of %d checks that are off by default; at most %d may be", records, offByDefault, most)
	delete(more, "get")
	delete(more, "hello") // a new connection's
	if records > most || len(more) > 0 {
		t.Errorf("opted-out marketing costs, beside the background: %d reads of a record, %s", records, more)
	}
}
