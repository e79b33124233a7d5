package decisionlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

const (
	flushSize  = 64 << 10    // bytes that are written together
	flushEvery = time.Second // at the latest
)

// writer is the goroutine that writes a Log.
type writer struct {
	*Log
	open  func() (f file, torn bool, err error)
	every time.Duration
	log   *slog.Logger

	file    file
	buffer  bytes.Buffer
	encode  *json.Encoder
	ends    []int // where the entries of the buffer end, but for the log's own
	torn    bool  // the file may end in the middle of a line
	marked  int64 // entries lost so far that the log, with the buffer, tells of
	told    int64 // and without the buffer
	failing bool  // and it was said so
}

// start opens the file and marks its beginning.
func (w *writer) start() (err error) {
	if w.file, w.torn, err = w.open(); err != nil {
		return fmt.Errorf("decision log: %w", err)
	}
	w.encode = json.NewEncoder(&w.buffer)
	w.encode.SetEscapeHTML(false)
	w.mark(KindOpen, 0)
	return nil
}

// run writes until the log is closed.
func (w *writer) run() error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case e := <-w.queue:
			w.add(e)
		case <-tick.C:
			w.flush()
		case <-w.reopen:
			w.flush()
			w.change()
		case <-w.stop:
			return w.end()
		}
	}
}

// add writes an entry to the buffer, and what is missing before it.
func (w *writer) add(e *Entry) {
	w.markGap()
	w.line(e)
	w.ends = append(w.ends, w.buffer.Len())
	if w.buffer.Len() >= flushSize {
		w.flush()
	}
}

// markGap says what is missing since it was last said. It also follows a line
// that is torn, so that a reader knows it for one.
func (w *writer) markGap() {
	if lost := w.dropped.Load() + w.failed.Load(); lost > w.marked || w.torn {
		w.mark(KindGap, lost-w.marked)
		w.marked = lost
	}
}

// mark writes an entry of the log's own.
func (w *writer) mark(kind Kind, lost int64) {
	w.line(&Entry{V: Version, Kind: kind, At: w.now().UnixMilli(), Lost: lost})
}

// line writes one line to the buffer. The first one after a line that may be
// torn is kept apart from it.
func (w *writer) line(e *Entry) {
	if w.torn {
		w.buffer.WriteByte('\n')
		w.torn = false
	}
	if err := w.encode.Encode(e); err != nil {
		w.log.Error("an entry of the decision log cannot be written down", "error", err) // never: it is made of plain values
	}
}

// flush writes the buffer to the file. What cannot be written is counted and
// given up, so that nothing piles up behind a full disk.
func (w *writer) flush() {
	if w.buffer.Len() == 0 {
		return
	}
	n, err := w.file.Write(w.buffer.Bytes())
	if err == nil {
		w.written.Add(int64(len(w.ends)))
		w.told = w.marked
		if w.failing {
			w.failing = false
			w.log.Info("the decision log can be written again", "failed", w.failed.Load())
		}
	} else {
		w.broke(n, err)
	}
	w.buffer.Reset()
	w.ends = w.ends[:0]
}

// broke counts what a failed write has left unwritten.
func (w *writer) broke(n int, err error) {
	whole, _ := slices.BinarySearch(w.ends, n+1)
	w.written.Add(int64(whole))
	w.failed.Add(int64(len(w.ends) - whole))
	w.torn, w.marked = true, w.told
	if !w.failing {
		w.failing = true
		w.log.Error("the decision log cannot be written; what is decided meanwhile is missing in it", "error", err)
	}
}

// change takes the file of that name in the place of the one that is open.
func (w *writer) change() {
	next, torn, err := w.open()
	if err != nil {
		w.log.Error("the decision log cannot be opened again; the file that is open is written on", "error", err)
		return
	}
	if err := errors.Join(w.file.Sync(), w.file.Close()); err != nil {
		w.log.Error("the decision log that was moved away may lack its end", "error", err)
	}
	w.file, w.torn = next, torn
	w.mark(KindOpen, 0)
	w.flush()
	w.log.Info("the decision log was opened again")
}

// end writes what is queued, and closes the file.
func (w *writer) end() error {
	for {
		select {
		case e := <-w.queue:
			w.add(e)
			continue
		default:
		}
		break
	}
	w.markGap()
	w.flush()
	if err := errors.Join(w.file.Sync(), w.file.Close()); err != nil {
		return fmt.Errorf("decision log: %w", err)
	}
	return nil
}
