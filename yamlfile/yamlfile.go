// Package yamlfile reads YAML files strictly: what nobody asked for is
// refused, and every fault is shown with its line. The catalog and the
// configuration are read with it.
package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/sendgate/sendgate"
)

// MaxBytes bounds a file.
const MaxBytes = 4 << 20

// File is a file that was read. It remembers where its members stand.
type File struct {
	name string
	ast  *ast.File
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
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%s: a file of at most %d bytes is read", path, MaxBytes)
	}
	return Decode(path, data, into)
}

// Decode reads one YAML document into a value. Members that the value does not
// have, and members given twice, are refused. name stands for the file in
// errors, which show the line and what is around it.
func Decode(name string, data []byte, into any) (*File, error) {
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, yaml.FormatError(err, false, true))
	}
	switch n := len(parsed.Docs); {
	case n > 1:
		return nil, fmt.Errorf("%s: one YAML document is read, and this file has %d", name, n)
	case n == 0 || parsed.Docs[0].Body == nil:
		return nil, fmt.Errorf("%s: the file is empty", name)
	}
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(into); err != nil {
		return nil, fmt.Errorf("%s: %s", name, yaml.FormatError(err, false, true))
	}
	return &File{name: name, ast: parsed}, nil
}

// Locate puts the line of each fault before it: `name:LINE: member: what is
// wrong`, one a line, by rising line. An error that names no member is
// returned as it is.
func (f *File) Locate(err error) error {
	var faults sendgate.Errors
	var one *sendgate.Error
	if errors.As(err, &one) {
		faults = sendgate.Errors{one}
	} else if !errors.As(err, &faults) {
		return err
	}
	type located struct {
		line int
		text string
	}
	all := make([]located, len(faults))
	for i, fault := range faults {
		line := f.line(fault.Field)
		all[i] = located{line, fmt.Sprintf("%s:%d: %s: %s", f.name, line, fault.Field, fault.Detail)}
	}
	slices.SortStableFunc(all, func(a, b located) int { return cmp.Compare(a.line, b.line) })
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.text
	}
	return errors.New(strings.Join(texts, "\n"))
}

// line finds the line of a member, or of the nearest one around it that the
// file has. A member is a path such as `categories.marketing.caps[0].window`.
func (f *File) line(member string) int {
	for member != "" {
		if path, err := yaml.PathString("$." + member); err == nil {
			if node, err := path.FilterFile(f.ast); err == nil && node != nil {
				return firstLine(node)
			}
		}
		member = member[:max(strings.LastIndexAny(member, ".["), 0)]
	}
	return 1
}

// firstLine is the line that a node begins on. The token of a mapping is its
// first colon, so its first key is asked.
func firstLine(node ast.Node) int {
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	return node.GetToken().Position.Line
}
