//go:build unix

package bloom

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Load takes a private copy of a snapshot, checks the whole of it, and maps it.
// fetch writes the snapshot; the copy is a file without a name in a folder, of
// which nothing is left when the process ends. An empty folder is the system's
// for temporary files. A snapshot that is damaged is ErrRefused; any other error
// is one of fetching or of the machine.
func Load(dir string, fetch func(io.Writer) error) (_ *Snapshot, err error) {
	f, err := nameless(dir)
	if err != nil {
		return nil, fmt.Errorf("make a private copy of the snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := fetch(f); err != nil {
		return nil, err
	}
	return mapped(f)
}

// Open checks a snapshot file and maps it. The file must not be changed while
// the snapshot is in use.
func Open(path string) (_ *Snapshot, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return mapped(f)
}

// mapped maps a file for as long as the snapshot that it holds is referred to.
// The garbage collector finds out when that ends: readers need no lock and no
// count, and memory is given back with the collection after the last one.
func mapped(f *os.File) (*Snapshot, error) {
	s, data, err := mapFile(f)
	if err != nil {
		return nil, err
	}
	runtime.AddCleanup(s, func(data []byte) { _ = unix.Munmap(data) }, data)
	return s, nil
}

// mapFile maps a file, whose snapshot is not to be used once it is unmapped.
func mapFile(f *os.File) (*Snapshot, []byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() < preludeSize {
		return nil, nil, refuse("it has %d bytes, which is too few for a snapshot", info.Size())
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map the snapshot: %w", err)
	}
	s, err := parse(data)
	if err != nil {
		return nil, nil, errors.Join(err, unix.Munmap(data))
	}
	return s, data, nil
}

// unmap gives mapped memory back.
func unmap(data []byte) error { return unix.Munmap(data) }
