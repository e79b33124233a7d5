package bloom

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// spill is a file of keys that are too many for the memory. It is made when it
// is needed.
type spill struct {
	dir  string
	most int64        // keys in memory
	held atomic.Int64 // keys in memory, but for what feeders have
	lots sync.Pool    // of *[lotKeys]uint64
	end  atomic.Int64

	open sync.Once
	file *os.File
	err  error
}

// extent is a part of the file, in keys.
type extent struct{ at, keys int64 }

const keyBytes = 8

// lot is an empty lot.
func (s *spill) lot() []uint64 {
	if lot, ok := s.lots.Get().(*[lotKeys]uint64); ok {
		return lot[:0]
	}
	return make([]uint64, 0, lotKeys)
}

// write puts lots of so many keys into the file, and has them used again.
func (s *spill) write(lots [][]uint64, keys int64) (extent, error) {
	s.open.Do(func() { s.file, s.err = nameless(s.dir) })
	if s.err != nil {
		return extent{}, fmt.Errorf("keep keys on disk: %w", s.err)
	}
	e := extent{s.end.Add(keys) - keys, keys}
	w := bufio.NewWriterSize(io.NewOffsetWriter(s.file, e.at*keyBytes), int(min(keys*keyBytes, 256<<10)))
	for i, lot := range lots {
		if _, err := w.Write(bytesOf(lot)); err != nil {
			return e, s.failed(err)
		}
		if lots[i] = nil; cap(lot) == lotKeys {
			s.lots.Put((*[lotKeys]uint64)(lot[:lotKeys]))
		}
	}
	if err := w.Flush(); err != nil {
		return e, s.failed(err)
	}
	return e, nil
}

func (s *spill) failed(err error) error {
	return fmt.Errorf("keep keys on disk, in %s: %w", tempDir(s.dir), cause(err))
}

// read appends the keys of a part.
func (s *spill) read(keys []uint64, e extent) ([]uint64, error) {
	from := len(keys)
	keys = append(keys, make([]uint64, e.keys)...) // which makes nothing where there is room
	if _, err := s.file.ReadAt(bytesOf(keys[from:]), e.at*keyBytes); err != nil {
		return nil, s.failed(err)
	}
	return keys, nil
}

// bytes is how large the file is.
func (s *spill) bytes() int64 { return s.end.Load() * keyBytes }

// close gives the file back.
func (s *spill) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
