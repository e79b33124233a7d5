package bloom

import (
	"cmp"
	"errors"
	"fmt"
	"os"
)

// nameless makes a file without a name in a folder, so that nobody else can
// change it and nothing is left of it when the process ends, however it does.
// An empty folder is the system's for temporary files.
func nameless(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "sendgate-*.filter")
	if err != nil {
		return nil, fmt.Errorf("make a file in %s: %w", tempDir(dir), cause(err))
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func tempDir(dir string) string { return cmp.Or(dir, os.TempDir()) }

// cause is an error without the path that it is about, which is another one
// every time.
func cause(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
