package protocol_test

import (
	"testing"

	. "github.com/sendgate/sendgate/internal/protocol"
)

// oneGate is gate A, which does everything, alone.
func oneGate(b Budget, snapshot bool) Config {
	c := Config{
		Budget: b, Snapshot: snapshot, Absent: B,
		WritersAt: A, FollowersAt: A, SweepsAt: A, CarriesAt: A, ChecksAt: A, ResetsAt: A, CrashesAt: A,
	}
	if b.Swaps > 0 {
		c.KeepersAt = A
	}
	return c
}

// bystander is gate B, which reads the stream now and then, beside A, which
// makes changes and sweeps.
func bystander(b Budget, snapshot bool) Config {
	return Config{
		Budget: b, Snapshot: snapshot, Silent: Both, OnlySweepsAnnounce: true,
		WritersAt: A, FollowersAt: B, SweepsAt: A, CarriesAt: A, ResetsAt: B,
	}
}

// defects are worlds in which one rule is broken, and which the promises would
// survive otherwise: the last of each is checked as well.
var defects = map[string]struct {
	defects Defects
	world   Config
}{
	"a lease is ignored": {
		Defects{LeaseIgnored: true},
		Config{Budget: Budget{Changes: 1, Checks: 1}, WritersAt: A, FollowersAt: Both, ChecksAt: B},
	},
	"pending is cleared at once": {
		Defects{ClearedAtOnce: true},
		oneGate(Budget{Changes: 1, Sweeps: 1, Failovers: 1}, true),
	},
	"cleared without the second announcement": {
		Defects{ClearedWithoutAnnouncing: true},
		oneGate(Budget{Changes: 1, Sweeps: 3, Failovers: 1, Checks: 1}, true),
	},
	"cleared without a look whether Redis holds it": {
		Defects{ClearedWithoutLook: true},
		oneGate(Budget{Changes: 1, Sweeps: 3, Failovers: 2}, true),
	},
	"ripe before it is replicated": {
		Defects{RipeAtOnce: true},
		oneGate(Budget{Changes: 1, Sweeps: 2, Failovers: 1}, true),
	},
	"announced without comparing": {
		Defects{AnnounceWithoutCompare: true},
		oneGate(Budget{Changes: 2}, false),
	},
	"an old reading is announced": {
		Defects{ReadAgeIgnored: true},
		oneGate(Budget{Changes: 2, Sweeps: 2, Evictions: 1}, false),
	},
	"a gate does not obey its own change": {
		Defects{OwnOverlayNotTold: true},
		oneGate(Budget{Changes: 1}, true),
	},
	"ready before pending is known": {
		Defects{ReadyAtOnce: true},
		oneGate(Budget{Changes: 1, Crashes: 1, Swaps: 1}, true),
	},
	"the mark comes after the scan": {
		Defects{MarkAfterScan: true},
		oneGate(Budget{Changes: 1, Sweeps: 2, Builds: 1}, false),
	},
	"swapped before the replay": {
		Defects{SwapBeforeReplay: true},
		oneGate(Budget{Changes: 1, Crashes: 1, Sweeps: 3, Swaps: 1}, true),
	},
	"a replay is exact before its end": {
		Defects{ReplayExact: true},
		func() Config {
			c := oneGate(Budget{Changes: 2, Crashes: 1, Sweeps: 1, Swaps: 1}, true)
			c.Silent, c.SweepsAt, c.CarriesAt = A, A, A
			return c
		}(),
	},
	"trimmed without the position": {
		Defects{TrimWithoutPosition: true},
		oneGate(Budget{Changes: 1, Builds: 1, Swaps: 1}, false),
	},
	"trimmed at once": {
		Defects{TrimAtOnce: true},
		oneGate(Budget{Changes: 2, Builds: 1, Swaps: 1, Failovers: 1}, false),
	},
	"a gap is not reported": {
		Defects{GapNotReported: true},
		bystander(Budget{Changes: 1, Sweeps: 2, Losses: 1}, true),
	},
	"entries stay exact through a gap": {
		Defects{ExactThroughGap: true},
		func() Config {
			c := bystander(Budget{Changes: 2, Sweeps: 2, Losses: 1}, false)
			c.WritersAt = Both
			return c
		}(),
	},
	"the filter stays current through a gap": {
		Defects{CurrentThroughGap: true},
		bystander(Budget{Changes: 1, Sweeps: 2, Losses: 1}, true),
	},
	"a sweep tells what it read before the epoch": {
		Defects{SweepBeforeEpoch: true},
		func() Config {
			c := bystander(Budget{Changes: 2, Sweeps: 3, Losses: 1}, false)
			c.SweepsAt = Both
			return c
		}(),
	},
	"an older cached record counts": {
		Defects{KnownRevisionIgnored: true},
		oneGate(Budget{Changes: 2, Resets: 1}, false),
	},
}

// TestEveryRuleIsMissed breaks the rules one by one.
func TestEveryRuleIsMissed(t *testing.T) {
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holds(t, d.world)
			d.world.Defects = d.defects
			isBroken(t, d.world)
		})
	}
}

// TestStrongerRules has faults that the protocol does not stand as it is, and
// rules with which it would.
func TestStrongerRules(t *testing.T) {
	twice := bystander(Budget{Changes: 2, Sweeps: 2, Losses: 2}, false)
	twice.WritersAt = Both
	filled := oneGate(Budget{Changes: 1, Sweeps: 3, Failovers: 2, Checks: 1}, true)
	for name, c := range map[string]struct {
		rules Rules
		world Config
	}{
		"Redis loses everything twice":      {Rules{NoCursorIsAGap: true}, twice},
		"two failovers, and a fill between": {Rules{ThroughWhenHeard: true}, filled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isBroken(t, c.world)
			c.world.Rules = c.rules
			holds(t, c.world)
			if c.rules.ThroughWhenHeard {
				c.world.Defects = Defects{SightingsThroughGap: true}
				isBroken(t, c.world)
			}
		})
	}
}
