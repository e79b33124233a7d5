package sendgate

import "time"

// SystemClock is the default of every clock in this module: the machine's own.
// Nothing else outside cmd asks the machine for the time.
func SystemClock() time.Time { return time.Now() }
