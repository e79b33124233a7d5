package yamlfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sendgate/sendgate"
)

// mostFaults is how many faults are shown of a file. Nobody reads on.
const mostFaults = 100

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
	more := ""
	if n := len(faults) - mostFaults; n > 0 {
		faults, more = faults[:mostFaults], fmt.Sprintf("\n%s: and %d more", f.name, n)
	}
	all := make([]located, len(faults))
	for i, fault := range faults {
		line := f.line(fault.Field)
		all[i] = located{line, fmt.Sprintf("%s:%d: %s: %s", f.name, line, orFile(fault.Field), fault.Detail)}
	}
	slices.SortStableFunc(all, func(a, b located) int { return cmp.Compare(a.line, b.line) })
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.text
	}
	return errors.New(strings.Join(texts, "\n") + more)
}

// line finds the line of a member, or of the nearest one around it that the
// file has. A member is a path such as `categories.marketing.caps[0].window`;
// names may hold dots and brackets themselves, so that the file is asked which
// of its names the path can go on with.
func (f *File) line(path string) int {
	line, _ := nearest(f.root, path)
	return max(line, 1)
}

// nearest follows a path as far as it leads. It returns the line of the last
// member on it, 0 if there is none, and how much of the path is left.
func nearest(node ast.Node, path string) (line, left int) {
	left = len(path)
	try := func(at, child ast.Node, rest string) {
		below, more := nearest(child, rest)
		if more >= left {
			return
		}
		if line, left = below, more; line == 0 {
			line = firstLine(at)
		}
	}
	if list, ok := node.(*ast.SequenceNode); ok {
		number, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(list.Values) {
			try(list.Values[i], list.Values[i], strings.TrimPrefix(rest, "."))
		}
		return line, left
	}
	members, _ := membersOf(node)
	for _, m := range members {
		rest, ok := strings.CutPrefix(path, m.Key.GetToken().Value)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			try(m.Key, m.Value, strings.TrimPrefix(rest, "."))
		}
	}
	return line, left
}

// membersOf lists the members of a mapping.
func membersOf(node ast.Node) (members []*ast.MappingValueNode, ok bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// firstLine is the line that a node begins on. The token of a mapping may be
// its first colon, so its first key is asked.
func firstLine(node ast.Node) int {
	if members, ok := membersOf(node); ok && len(members) > 0 {
		node = members[0].Key
	}
	return node.GetToken().Position.Line
}
