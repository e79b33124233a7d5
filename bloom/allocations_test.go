//go:build !race

package bloom_test

import "testing"

// A check that is answered in process allocates nothing. Under the race detector
// pools forget.
func TestAnswersInProcessAllocateNothing(t *testing.T) {
	gate := memoryGate(t)
	for _, c := range inMemory {
		ask := func() {
			d, err := gate.Decide(t.Context(), c.check)
			if err != nil || d.Reason != c.reason || d.Step != c.step || !d.InProcess {
				t.Fatalf("%s: %+v %v", c.name, d, err)
			}
		}
		if n := testing.AllocsPerRun(1000, ask); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
