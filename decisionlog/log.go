package decisionlog

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sendgate/sendgate"
)

var _ sendgate.Observer = (*Log)(nil)

// DefaultQueue is how many entries wait to be written at most.
const DefaultQueue = 65_536

// Options describe a Log. All but Queue are required.
type Options struct {
	Path  string // of the file; it is made if it is not there, for its owner alone
	Queue int    // entries that wait to be written at most; 0 is DefaultQueue
	Log   *slog.Logger
	Now   func() time.Time

	open  func() (f file, torn bool, err error) // of tests
	flush time.Duration
}

// file is what a Log is written to.
type file interface {
	io.WriteCloser
	Sync() error
}

// Log is a gate's observer that writes down what caps have charged and denied.
// It makes no check wait: what does not fit into its queue is dropped, counted,
// and marked in the log. Entries are in the file a second later at the latest,
// and on the disk once it is closed. One process writes a file.
type Log struct {
	queue    chan *Entry
	reopen   chan struct{}
	stop     chan struct{}
	ended    chan struct{}
	once     sync.Once
	closed   atomic.Bool
	closeErr error
	now      func() time.Time

	written, dropped, failed atomic.Int64
}

// Open opens a log to be written on, and starts what writes. Close ends it.
func Open(o Options) (*Log, error) {
	if o.Queue == 0 {
		o.Queue = DefaultQueue
	}
	if o.open == nil {
		o.open = func() (file, bool, error) { return openFile(o.Path) }
	}
	l := &Log{
		queue: make(chan *Entry, o.Queue), reopen: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}), now: o.Now,
	}
	if o.flush == 0 {
		o.flush = flushEvery
	}
	w := &writer{Log: l, open: o.open, every: o.flush, log: o.Log}
	if err := w.start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(l.ended)
		l.closeErr = w.run()
	}()
	return l, nil
}

// openFile opens a file to write at its end, and tells whether it ends in the
// middle of a line.
func openFile(path string) (f file, torn bool, err error) {
	opened, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	size, err := opened.Seek(0, io.SeekEnd)
	last := []byte{'\n'}
	if err == nil && size > 0 {
		_, err = opened.ReadAt(last, size-1)
	}
	if err != nil {
		return nil, false, errors.Join(err, opened.Close())
	}
	return opened, last[0] != '\n', nil
}

// put hands an entry to the writer, or drops it.
func (l *Log) put(e *Entry) {
	if l.closed.Load() {
		l.dropped.Add(1)
		return
	}
	select {
	case l.queue <- e:
	default:
		l.dropped.Add(1)
	}
}

// Reopen has the file opened anew, under the same name, so that one that was
// moved away can be kept elsewhere. If that fails, the old one is written on.
func (l *Log) Reopen() {
	select {
	case l.reopen <- struct{}{}:
	default: // it is about to be anyway
	}
}

// Close writes what is queued, has the disk keep it, and closes the file. What
// is decided later is dropped. It waits for a disk as long as that takes.
func (l *Log) Close() error {
	l.once.Do(func() {
		l.closed.Store(true)
		close(l.stop)
	})
	<-l.ended
	return l.closeErr
}

// Written is how many entries are in the file.
func (l *Log) Written() int64 { return l.written.Load() }

// Dropped is how many entries found the queue full.
func (l *Log) Dropped() int64 { return l.dropped.Load() }

// Failed is how many entries could not be written.
func (l *Log) Failed() int64 { return l.failed.Load() }
