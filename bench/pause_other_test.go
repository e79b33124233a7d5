//go:build !linux

package bench

import "time"

// pause waits, as exactly as the runtime does.
func pause(d time.Duration) { time.Sleep(d) }
