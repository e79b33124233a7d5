package prefs

import (
	"fmt"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
)

// TestEverybodysTurnComes has more records be unfinished than one sweep carries
// on: each has its turn about as often as any other, the first and the last too.
func TestEverybodysTurnComes(t *testing.T) {
	const records, sweeps = 2 * sweepMost, 400
	s, now := &Sweeper{}, time.Unix(0, 0)
	var pending []PendingEntry
	for i := range records {
		pending = append(pending, PendingEntry{User: sendgate.UserID(fmt.Sprint("u", i)), Revision: 1, Since: now.Add(-time.Hour)})
	}
	turns := map[sendgate.UserID]int{}
	for range sweeps {
		users := s.unfinished(pending, true, 0, now)
		if len(users) != sweepMost {
			t.Fatalf("%d records in one sweep", len(users))
		}
		for _, user := range users {
			turns[user]++
		}
	}
	for _, i := range []int{0, 1, 50, sweepMost - 1, sweepMost, records - 2, records - 1} {
		// Half of the sweeps, give or take ten times the deviation.
		if n := turns[pending[i].User]; n < sweeps/2-100 || n > sweeps/2+100 {
			t.Errorf("record %d had %d turns in %d sweeps", i, n, sweeps)
		}
	}
}
