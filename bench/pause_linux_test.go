package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause waits, to some fifty microseconds.
func pause(d time.Duration) {
	if d > 0 {
		left := unix.NsecToTimespec(d.Nanoseconds())
		for unix.Nanosleep(&left, &left) == unix.EINTR {
		}
	}
}
