package chaos_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/internal/programs"
)

var (
	seed = flag.Uint64("chaos.seed", 1, "of who changes what at which gate; another one makes another test")
	only = flag.String("chaos.only", "", "the faults whose names have this in them; empty: all")
	long = flag.Bool("chaos.long", false, "more gates, faults that last three times as long or two minutes, several rounds")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	newPeople = 16                     // in each row
	before    = 600 * time.Millisecond // of traffic before the fault
)

// scene is one rig, and the faults that it goes through one after the other.
// What one leaves behind is what the next one meets.
type scene struct {
	name     string
	redis    func(r *rig) // starts its Redis
	troubles []trouble
	// environment is that of gates, which then run edited programs; nil: the
	// programs as they are.
	environment func(gate int) []string
}

// scenes are all of them, the longest first. They are played two at a time on
// two cores.
var scenes = []scene{
	{name: "single", redis: onOne, troubles: troubles},
	{name: "cluster", redis: onCluster, troubles: clusterTroubles},
	{name: "sentinel", redis: onSentinel, troubles: sentinelTroubles},
	{name: "pending for 2 s", redis: onOne, troubles: clearingTroubles, environment: everyGateHas(pendingVariable + "=2s")},
	{name: "clock 10 s ahead", redis: onOne, troubles: clockTroubles, environment: theVictimHas(clockVariable + "=10s")},
	{name: "clock 10 s behind", redis: onOne, troubles: clockTroubles, environment: theVictimHas(clockVariable + "=-10s")},
}

// TestNothingIsLost brings about every fault, and ends with one table of what
// each came to.
func TestNothingIsLost(t *testing.T) {
	t.Cleanup(client.CloseIdleConnections)
	t.Logf("seed %d", *seed)
	folder, edited := programs.Build(t), programs.Build(t, "-overlay", overlay(t))
	rows := make([][]*row, len(scenes))
	t.Run("scenes", func(t *testing.T) {
		for i, s := range scenes {
			if len(s.order(0)) > 0 {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					s.play(t, folder, edited, func(row *row) { rows[i] = append(rows[i], row) })
				})
			}
		}
	})
	report(t, slices.Concat(rows...))
}

// play brings about the scene's faults. done is told of each row.
func (s *scene) play(t *testing.T, folder, edited string, done func(*row)) {
	gates, rounds := 2, 1
	if *long {
		gates, rounds = 3, 3
	}
	if s.environment != nil {
		folder = edited
	}
	r := newRig(t, rigOptions{scene: s.name, folder: folder, edited: edited, gates: gates, redis: s.redis, environment: s.environment})
	if *long {
		r.scale, r.stall = 3, 2*time.Minute
	}
	checking := r.check(0)
	defer checking.end()
	done(r.run(calm))
	for round := range rounds {
		for _, i := range s.order(round) {
			for next := &s.troubles[i]; next != nil; next = next.then {
				tr := *next
				if round > 0 {
					tr.name = fmt.Sprintf("%s (%d)", tr.name, round+1)
				}
				done(r.run(tr))
			}
		}
	}
}

// calm is no fault at all.
var calm = trouble{name: "none", bring: (*rig).buildWell, touches: noGate}

// order is that of the faults: as they are listed, and in later rounds as the
// seed has it.
func (s *scene) order(round int) []int {
	var order []int
	for i, tr := range s.troubles {
		if strings.Contains(tr.name, *only) {
			order = append(order, i)
		}
	}
	if round > 0 {
		dice(1<<20, uint64(round)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
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
			t.Errorf("%s: %s: %s", row.scene, row.fault, fault)
		}
	}
}

// run brings about one fault, and finds out what it came to.
func (r *rig) run(tr trouble) *row {
	row := &row{scene: r.scene, fault: tr.name, allowance: limit, stated: tr.losesCaps}
	if tr.losesCaps != "" {
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
	r.ledger.faultBegins(tr.touches)
	tr.bring(r)
	over := r.ledger.faultEnds()
	writing.stop()
	r.settle(row, over)
	writing.end()
	r.audit(row)
	r.fillCaps(row)
	row.mu.Lock()
	defer row.mu.Unlock()
	r.t.Logf("%-36s %4.1f s, %d changes, worst %s", tr.name, over.Sub(began).Seconds(), row.changes, row.worst.Round(time.Millisecond))
	return row
}
