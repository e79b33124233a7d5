package chaos_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/internal/programs"
)

var (
	seed = flag.Uint64("chaos.seed", 1, "of who changes what at which gate; another one makes another test")
	only = flag.String("chaos.only", "", "the faults whose names have this in them; empty: all")
	long = flag.Bool("chaos.long", false, "more gates, faults that last three times as long, several rounds")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	newPeople = 16                     // in each row
	before    = 600 * time.Millisecond // of traffic before the fault
)

// TestNothingIsLost brings about every fault, one after the other. What one
// leaves behind is what the next one meets.
func TestNothingIsLost(t *testing.T) {
	t.Cleanup(client.CloseIdleConnections)
	t.Logf("seed %d", *seed)
	gates, rounds := 2, 1
	if *long {
		gates, rounds = 3, 3
	}
	r := newRig(t, programs.Build(t), gates, nil)
	if *long {
		r.scale = 3
	}
	var rows []*row
	checking := r.check(0)
	defer checking.end()
	rows = append(rows, r.run(trouble{name: "none", bring: (*rig).buildWell}))
	for round := range rounds {
		for _, i := range r.order(round) {
			tr := troubles[i]
			if round > 0 {
				tr.name = fmt.Sprintf("%s (%d)", tr.name, round+1)
			}
			rows = append(rows, r.run(tr))
		}
	}
	checking.end()
	report(t, rows)
}

// report prints what rows came to, and wants nothing to be broken in any. No
// traffic goes on any more.
func report(t *testing.T, rows []*row) {
	t.Helper()
	for _, row := range rows {
		if row.charged > row.allowance {
			row.blame(&row.wrongSends, "%d were charged under a cap of %d, and %d may be", row.charged, limit, row.allowance)
		}
	}
	table(t, rows)
	for _, row := range rows {
		for _, fault := range row.faults {
			t.Errorf("%s: %s", row.fault, fault)
		}
	}
}

// order is that of the faults: as they are listed, and in later rounds as the
// seed has it.
func (r *rig) order(round int) []int {
	var order []int
	for i, tr := range troubles {
		if strings.Contains(tr.name, *only) {
			order = append(order, i)
		}
	}
	if round > 0 {
		r.dice(1<<20, uint64(round)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
}

// run brings about one fault, and finds out what it came to.
func (r *rig) run(tr trouble) *row {
	row := &row{fault: tr.name, allowance: limit}
	if tr.losesCaps {
		row.allowance = 2 * limit
	}
	use := uint64(len(r.ledger.everybody()) + 1)
	ids := make([]string, newPeople)
	for i := range ids {
		ids[i] = fmt.Sprintf("person %d", int(use)+i)
	}
	r.ledger.enrol(ids)
	r.row.Store(row)
	everybody := r.ledger.everybody()
	writing := r.write(row, everybody[len(everybody)-newPeople:], use)
	<-time.After(before)

	began := time.Now()
	r.ledger.faultBegins()
	tr.bring(r)
	over := r.ledger.faultEnds()
	writing.stop()
	r.settle(row, over)
	writing.end()
	r.audit(row)
	row.mu.Lock()
	defer row.mu.Unlock()
	r.t.Logf("%-36s %4.1f s, %d changes, worst %s", tr.name, over.Sub(began).Seconds(), row.changes, row.worst.Round(time.Millisecond))
	return row
}
