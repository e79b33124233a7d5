package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

const (
	// A stage is a file that is being written. Its name begins with a dot and
	// so is none of a key, and no listing looks at it.
	stagePrefix    = "."
	stageExtension = ".part"

	// abandonedAfter is how long a stage stands still before it counts as what
	// a killed process has left. Writing one takes seconds. If one is removed
	// that is alive after all, its Publish fails and nothing is broken.
	abandonedAfter = time.Hour
)

// stageName is narrow: what it matches may be removed.
var stageName = regexp.MustCompile(`^\.[a-z0-9][a-z0-9_-]*-[0-9]{20}\.filter\.[A-Z2-7]{26,}\.part$`)

// folder is a place in a file system.
//
// It reads through fileblob but does not write through it: fileblob keeps two
// writers of one key apart by a lock in its own process, so that of two
// builders the second would replace the first one's snapshot; and it does not
// wait for the disk before it gives a file its name.
type folder struct {
	dir    string
	bucket *blob.Bucket
}

// makeFolder makes a folder if it is missing and returns its path free of
// symbolic links, since fileblob finds nothing in a folder that is one itself.
func makeFolder(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// list lists through fileblob, which takes a folder that cannot be read for an
// empty one, and fails when a file goes while it is at it.
func (f folder) list(ctx context.Context, prefix string) ([]*blob.ListObject, error) {
	for {
		if err := f.open(); err != nil {
			return nil, err
		}
		objects, err := listAll(ctx, f.bucket, prefix)
		if gcerrors.Code(err) != gcerrors.NotFound || ctx.Err() != nil {
			return objects, err
		}
	}
}

func (f folder) open() error {
	d, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	_, err = d.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// readable refuses what is no file: a pipe would keep its reader for ever. What
// is not there is found out by reading.
func (f folder) readable(key string) error {
	info, err := os.Stat(filepath.Join(f.dir, key))
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", key)
	}
	return nil
}

// publish writes a stage and gives it its name by a hard link, the one step
// that fails on every file system, and over NFS, if the name is there. The
// contents are on the disk by then. The name itself may be lost with the power:
// then the generation was never published.
func (f folder) publish(ctx context.Context, key string, write func(io.Writer) error) error {
	stage, err := f.stage(key)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(stage.Name()) }() // or else a later Publish does
	f.sweep(stage)
	err = write(stage)
	if err == nil {
		err = stage.Sync()
	}
	err = errors.Join(err, stage.Close())
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return claim(stage.Name(), filepath.Join(f.dir, key))
}

// stage makes the file in the folder itself, since a hard link does not cross
// file systems; readable for all, since gates may run as another user.
func (f folder) stage(key string) (*os.File, error) {
	name := stagePrefix + key + "." + rand.Text() + stageExtension
	return os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// claim gives a file a second name, or fails with ErrTaken if another has it.
func claim(file, name string) error {
	err := os.Link(file, name)
	switch {
	case errors.Is(err, fs.ErrExist):
		if same(file, name) {
			return nil // NFS: the first answer was lost, and the link asked for again
		}
		return ErrTaken
	case errors.Is(err, fs.ErrNotExist), err == nil:
		return err
	default:
		return fmt.Errorf("%w (the folder's file system must have hard links)", err)
	}
}

func same(a, b string) bool {
	x, errX := os.Lstat(a)
	y, errY := os.Lstat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// sweep removes the stages that were abandoned, of all namespaces. The new
// stage tells the time: by the file system's clock, which dates the others too.
// What cannot be removed now is left to the next Publish.
func (f folder) sweep(stage *os.File) {
	now, err := stage.Stat()
	if err != nil {
		return
	}
	files, err := os.ReadDir(f.dir)
	if err != nil {
		return
	}
	for _, file := range files {
		if !stageName.MatchString(file.Name()) {
			continue
		}
		info, err := file.Info()
		if err == nil && info.Mode().IsRegular() && now.ModTime().Sub(info.ModTime()) > abandonedAfter {
			_ = os.Remove(filepath.Join(f.dir, file.Name()))
		}
	}
}
