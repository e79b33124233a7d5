package storm_test

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The sizes of the benchmarks.
var (
	dir      = flag.String("storm.dir", "", "folder for the store's file, such as /dev/shm where the disk is not what is asked about; a temporary one if empty")
	gates    = flag.Int("storm.gates", 8, "gates that changes get through to")
	rates    = flag.String("storm.rates", "250,500,1000", "changes a second, one benchmark of propagation each")
	steady   = flag.Duration("storm.steady", 20*time.Second, "how long changes are made at each rate; changes are cleared after 30 s, so that less does not show what that costs")
	callers  = flag.Int("storm.callers", 256, "who opt out at once in a storm")
	stormFor = flag.Duration("storm.for", 30*time.Second, "how long a storm lasts")
	drainFor = flag.Duration("storm.drain", time.Minute, "how long is waited, after a storm, until nothing is pending")
)

// The promise: a change is in force at every gate within 5 s of its
// acknowledgement, and within 10 s in a storm.
const (
	promised        = 5 * time.Second
	promisedInStorm = 10 * time.Second
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
