package boltstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/sendgate/sendgate/prefs"
)

// format is what the file says of itself. Its number rises with every change
// of the form that an older program would misread.
const format = "sendgate-prefs 1"

// lockWait is how long Open waits for the file's lock, twice at most: long
// enough for a process that is just ending, short enough for a person.
const lockWait = 400 * time.Millisecond

// ErrClosed is the error of every call after Close.
var ErrClosed = errors.New("boltstore: the store is closed")

// Store is a prefs.Store in one file. It is safe for concurrent use.
type Store struct {
	db *bbolt.DB

	queue   chan *write
	closing chan struct{} // closed by Close: nothing is queued any more
	stopped chan struct{} // closed by the writer when it has answered all
	close   func() error

	// unsure stands after a commit that failed: what reads see may not be on
	// the disk. See view.
	unsure atomic.Bool
}

var _ prefs.Store = (*Store)(nil)

// Open opens the store in the file at path, and creates the file, readable by
// its owner alone, if there is none; its folder must exist. It is an error if
// the file is open elsewhere (after less than a second), if it was not made by
// this package, if it is of another format version, or if it is damaged.
func Open(path string) (*Store, error) {
	fresh, err := inspect(path)
	if err != nil {
		return nil, explain(path, err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, explain(path, err)
	}
	if fresh {
		err = errors.Join(err, syncFolder(path))
	}
	if err = errors.Join(err, db.Update(initialise)); err != nil {
		return nil, explain(path, errors.Join(err, db.Close()))
	}
	s := &Store{db: db, queue: make(chan *write, maxQueue), closing: make(chan struct{}), stopped: make(chan struct{})}
	s.close = sync.OnceValue(func() error {
		close(s.closing)
		<-s.stopped
		return s.db.Close()
	})
	go s.writeAll()
	return s, nil
}

// Close answers what is queued, waits for reads that are under way, and closes
// the file. Calls that come later are ErrClosed, except for Close itself, which
// repeats its answer.
func (s *Store) Close() error { return s.close() }

// inspect looks at a file without changing it, and tells whether it is new. A
// file that is shorter than it says must not be opened for writing: reading past
// its end ends the process.
func inspect(path string) (fresh bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, errors.New("it is no regular file")
	}
	if info.Size() == 0 {
		return true, nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return false, db.View(func(tx *bbolt.Tx) error {
		// Its size is asked again under the lock: another process may have
		// written in between.
		if info, err = os.Stat(path); err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("it has been cut short: %d bytes of %d", info.Size(), tx.Size())
		}
		return checkFormat(tx)
	})
}

// checkFormat accepts a file without any bucket, which is as good as new, and
// one of this format.
func checkFormat(tx *bbolt.Tx) error {
	if name, _ := tx.Cursor().First(); name == nil {
		return nil
	}
	meta := tx.Bucket(bucketMeta)
	if meta == nil || meta.Get(keyFormat) == nil {
		return errors.New("it is another program's, not a Sendgate store")
	}
	if got := string(meta.Get(keyFormat)); got != format {
		return fmt.Errorf("it is of the format %q, and this program reads %q", got, format)
	}
	for _, name := range [][]byte{bucketRecords, bucketPending, bucketChanges} {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("it has no bucket %q", name)
		}
	}
	return nil
}

// initialise gives a new file its buckets, all or none of them.
func initialise(tx *bbolt.Tx) error {
	if err := checkFormat(tx); err != nil {
		return err
	}
	if tx.Bucket(bucketMeta) != nil {
		return nil
	}
	for _, name := range [][]byte{bucketMeta, bucketRecords, bucketPending, bucketChanges} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketMeta).Put(keyFormat, []byte(format))
}

// syncFolder makes a new file's name as durable as what will be in it.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" { // which has no such call
		return nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// explain says in words what bbolt's own errors leave open.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("boltstore: another process has %s open", path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		err = fmt.Errorf("it is not a Sendgate store, or is damaged: %w", err)
	}
	return fmt.Errorf("boltstore: opening %s: %w", path, err)
}

// view reads. After a failed commit it first has the writer make one that
// succeeds, because a read may see what failed only on its last step, and who
// reads back a write of their own takes it for stored.
func (s *Store) view(ctx context.Context, fn func(tx *bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.unsure.Load() {
		nothing := func(*bbolt.Tx) (bool, error) { return false, nil }
		if err := s.write(ctx, 0, nothing); err != nil {
			return err
		}
	}
	err := s.db.View(fn)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Layout returns the layout that the file was created with, and stores the one
// given, which must have at least one partition, if it has none yet.
func (s *Store) Layout(ctx context.Context, initial prefs.Layout) (prefs.Layout, error) {
	var layout prefs.Layout
	err := s.write(ctx, 0, func(tx *bbolt.Tx) (bool, error) {
		meta := tx.Bucket(bucketMeta)
		if data := meta.Get(keyLayout); data != nil {
			if err := json.Unmarshal(data, &layout); err != nil || layout.Partitions < 1 {
				return false, errCorrupt(bucketMeta, errForm)
			}
			return false, nil
		}
		if initial.Partitions < 1 {
			return false, fmt.Errorf("boltstore: a layout of %d partitions", initial.Partitions)
		}
		data, err := json.Marshal(initial)
		if err != nil {
			return false, err
		}
		layout = initial
		return true, meta.Put(keyLayout, data)
	})
	if err != nil {
		return prefs.Layout{}, err
	}
	return layout, nil
}
