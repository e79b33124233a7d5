package protocol_test

import (
	"testing"

	. "github.com/sendgate/sendgate/internal/protocol"
)

const most = 1_500_000 // states of one configuration

// worlds are small worlds of the protocol as it is, each explored whole.
var worlds = map[string]Config{
	"sweeps of two gates": {
		Budget: Budget{Changes: 1, Sweeps: 3}, Snapshot: true,
		WritersAt: A, FollowersAt: Both, SweepsAt: Both, CarriesAt: Both, Silent: A,
	},
	"two changes and a late one": {
		Budget: Budget{Changes: 2, Sweeps: 2, Evictions: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: A, SweepsAt: A, CarriesAt: A, Absent: B,
	},
	"changes at both gates": {
		Budget: Budget{Changes: 2, Sweeps: 1}, Snapshot: true,
		WritersAt: Both, FollowersAt: Both, SweepsAt: B, CarriesAt: B, Silent: A,
	},
	"a gate dies": {
		Budget: Budget{Changes: 1, Sweeps: 3, Crashes: 1, Swaps: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: A, SweepsAt: A, CarriesAt: A, KeepersAt: A, CrashesAt: A, Absent: B,
	},
	"a gate dies beside another": {
		Budget: Budget{Changes: 1, Sweeps: 2, Crashes: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: B, SweepsAt: B, CarriesAt: B, CrashesAt: A,
	},
	"a failover": {
		Budget: Budget{Changes: 1, Sweeps: 2, Failovers: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: Both, SweepsAt: A, CarriesAt: A, Silent: A,
	},
	"a failover and a fill": {
		Budget: Budget{Changes: 1, Sweeps: 3, Failovers: 1, Checks: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: A, SweepsAt: A, CarriesAt: A, ChecksAt: A, Absent: B,
	},
	"two failovers": {
		Budget: Budget{Changes: 1, Sweeps: 3, Failovers: 2}, Snapshot: true,
		WritersAt: A, FollowersAt: A, SweepsAt: A, CarriesAt: A, Absent: B,
	},
	"Redis loses everything": {
		Budget: Budget{Changes: 2, Sweeps: 2, Losses: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: B, SweepsAt: A, CarriesAt: A, Silent: Both,
	},
	"two fills and evictions": {
		Budget: Budget{Changes: 2, Checks: 2, Evictions: 1, Resets: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: B, ChecksAt: B, ResetsAt: B,
	},
	"a fill and a sweep": {
		Budget:    Budget{Changes: 1, Sweeps: 2, Checks: 2, Evictions: 2},
		WritersAt: A, FollowersAt: A, SweepsAt: A, CarriesAt: A, ChecksAt: A, Absent: B,
	},
	"a rebuild and a swap at each gate": {
		Budget: Budget{Changes: 1, Builds: 1, Swaps: 2}, Snapshot: true,
		WritersAt: A, FollowersAt: Both, KeepersAt: Both, Silent: A,
	},
	"a rebuild while somebody changes": {
		Budget: Budget{Changes: 3, Builds: 1, Swaps: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: A, KeepersAt: A, Absent: B,
	},
	"a rebuild and a failover": {
		Budget: Budget{Changes: 2, Builds: 1, Swaps: 1, Failovers: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: A, KeepersAt: A, Absent: B,
	},
	"a rebuild and a sweep": {
		Budget: Budget{Changes: 1, Sweeps: 2, Builds: 1, Swaps: 1}, Snapshot: true,
		WritersAt: A, FollowersAt: A, SweepsAt: A, CarriesAt: A, KeepersAt: A, Absent: B,
	},
}

// TestThePromises goes through everything that may happen in each world.
func TestThePromises(t *testing.T) {
	for name, world := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holds(t, world)
		})
	}
}

func holds(t *testing.T, c Config) {
	t.Helper()
	c.Most = most
	result, err := Explore(c)
	if err != nil || result.Broken != "" {
		t.Fatalf("%v %v", result, err)
	}
	t.Log(result)
}

func isBroken(t *testing.T, c Config) {
	t.Helper()
	c.Most = most
	result, err := Explore(c)
	if err != nil || result.Broken == "" {
		t.Fatalf("it is not caught: %v %v", result, err)
	}
	t.Log(result)
}
