// Package yamlfile reads YAML files strictly: what nobody asked for is
// refused, and every fault is shown with its line. The catalog and the
// configuration are read with it.
//
// Anchors, aliases, merge keys and tags are refused: a file says what it says
// where it says it, and no few lines stand for millions.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxBytes bounds a file.
const MaxBytes = 1 << 20

// File is a file that was read. It remembers where its members stand.
type File struct {
	name string
	root ast.Node
}

// Read reads the file at a path into a value, as Decode does.
func Read(path string, into any) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	return Decode(path, data, into)
}

// Decode reads one YAML document into a value. Members that the value does not
// have, and members given twice, are refused, and so is what does not fit its
// member: a fraction is no whole number. name stands for the file in errors,
// which show the line and what is around it.
func Decode(name string, data []byte, into any) (f *File, err error) {
	// The library is known to panic on some input. Somebody's slip in a file
	// that is read again while the gate serves must not end the gate.
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("%s: this is not understood as YAML (%v)", name, p)
		}
	}()
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("%s: a file of at most %d bytes is read", name, MaxBytes)
	case !utf8.Valid(data):
		return nil, fmt.Errorf("%s:%d: the file is not valid UTF-8", name, lineOfInvalid(data))
	}
	if err := plain(name, data); err != nil {
		return nil, err
	}
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, shown(name, err)
	}
	switch n := len(parsed.Docs); {
	case n > 1:
		return nil, fmt.Errorf("%s: one YAML document is read, and this file has %d", name, n)
	case n == 0 || parsed.Docs[0].Body == nil:
		return nil, fmt.Errorf("%s: the file is empty", name)
	}
	f = &File{name: name, root: parsed.Docs[0].Body}
	if err := f.fits(f.root, reflect.TypeOf(into).Elem(), ""); err != nil {
		return nil, err
	}
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(into); err != nil {
		return nil, shown(name, err)
	}
	return f, nil
}

// shown is an error of the library in the form that all others have: the line,
// what is wrong, and what is around it.
func shown(name string, err error) error {
	var located yaml.Error
	if !errors.As(err, &located) || located.GetToken() == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, around, _ := strings.Cut(yaml.FormatError(err, false, true), "\n")
	return fmt.Errorf("%s:%d: %s\n%s", name, located.GetToken().Position.Line, located.GetMessage(), strings.TrimRight(around, "\n"))
}

func lineOfInvalid(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size <= 1:
			return line
		case r == '\n':
			line++
		}
		data = data[size:]
	}
	return line
}
