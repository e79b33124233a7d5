package decisionlog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxLine is more than any entry takes: 32 caps by ids of the greatest length.
const maxLine = 1 << 20

// LineError is a line of a log that is no entry.
type LineError struct {
	Path   string
	Number int64
	Err    error
}

// Error names the line, and says what is wrong with it.
func (e *LineError) Error() string {
	return fmt.Sprintf("%s, line %d: no entry of a decision log: %v", e.Path, e.Number, e.Err)
}

// Unwrap is what is wrong with it.
func (e *LineError) Unwrap() error { return e.Err }

// lines reads one log.
type lines struct {
	path   string
	closes []io.Closer
	in     *bufio.Reader
	skip   bool // bad lines are counted, and read over
	stats  *Stats

	buffer []byte
	number int64 // of the line that was read last
	bad    error // of a line before, that may yet turn out to be torn
}

// openLines opens a log. One whose name ends in .gz is unpacked.
func openLines(path string, o ReadOptions, stats *Stats) (*lines, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := &lines{path: path, closes: []io.Closer{f}, skip: o.SkipBad, stats: stats}
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		unpacked, err := gzip.NewReader(f)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: is not packed by gzip, as .gz says: %w", path, err), f.Close())
		}
		l.closes, in = append(l.closes, unpacked), unpacked
	}
	l.in = bufio.NewReaderSize(in, 64<<10)
	return l, nil
}

func (l *lines) close() {
	for _, c := range l.closes {
		_ = c.Close() // it was only read
	}
}

// read reads the next entry that tells of a decision or an outcome; nil is the
// end. A bad line is torn if the log ends in it, or if a gate marks after it
// that it has opened the file or has failed to write.
func (l *lines) read() (*Entry, error) {
	for {
		line, ended, err := l.line()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.path, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			if ended {
				return nil, l.judgeBad(false)
			}
			continue
		}
		e, fault := parse(line)
		marks := fault == nil && (e.Kind == KindOpen || e.Kind == KindGap)
		if err := l.judgeBad(marks); err != nil {
			return nil, err
		}
		switch {
		case fault != nil:
			l.bad = &LineError{l.path, l.number, fault}
			if ended {
				return nil, l.judgeBad(true)
			}
		case marks:
			l.stats.Lost += e.Lost
		default:
			l.stats.Entries++
			return e, nil
		}
	}
}

func parse(line []byte) (*Entry, error) {
	e := &Entry{}
	if err := json.Unmarshal(line, e); err != nil {
		return nil, err
	}
	return e, e.check()
}

// line reads one line, without the end of one that is too long. ended tells that
// no line ending came.
func (l *lines) line() (line []byte, ended bool, err error) {
	l.buffer = l.buffer[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if len(l.buffer) <= maxLine {
			l.buffer = append(l.buffer, part...)
		}
		switch {
		case err == nil:
			l.number++
			return l.buffer, false, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF): // the latter of what was packed, and is still being written
			l.number++
			return l.buffer, true, nil
		default:
			return nil, false, err
		}
	}
}

// judgeBad makes up its mind about the bad line before.
func (l *lines) judgeBad(torn bool) (err error) {
	switch {
	case l.bad == nil:
	case torn:
		l.stats.Torn.add(l.bad)
	case l.skip:
		l.stats.Bad.add(l.bad)
	default:
		err = l.bad
	}
	l.bad = nil
	return err
}
