package redistest

import (
	"bytes"
	"sync"
)

// Output is what a process or a log has written, to be read while it goes on.
type Output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write takes what was written.
func (o *Output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(data)
}

// String is all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}
