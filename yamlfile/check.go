package yamlfile

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/sendgate/sendgate"
)

// The library takes a time that grows with the square of how deep lists and
// mappings lie in each other, and of how much stands in one line.
const (
	maxDepth = 32
	maxLine  = 4096 // bytes
)

var refusedTokens = map[token.Type]string{
	token.AnchorType: "anchors", token.AliasType: "aliases", token.MergeKeyType: "merge keys",
	token.TagType: "tags", token.DirectiveType: "directives", token.MappingKeyType: "keys that begin with ?",
}

// plain refuses what a file has no use for, before the parser sees it.
func plain(name string, data []byte) error {
	number := 0
	for text := range bytes.Lines(data) {
		if number++; len(text) > maxLine {
			return fmt.Errorf("%s:%d: a line of at most %d bytes is read", name, number, maxLine)
		}
	}
	depth, dashes, line := 0, 0, 0
	for _, t := range lexer.Tokenize(string(data)) {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		if what := refusedTokens[t.Type]; what != "" {
			return fmt.Errorf("%s:%d: %s are not read here", name, line, what)
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			dashes++
		default:
		}
		if depth > maxDepth || dashes > maxDepth {
			return fmt.Errorf("%s:%d: nested deeper than %d", name, line, maxDepth)
		}
	}
	return nil
}

// fits refuses what the library would bend until it fits: 1.5 would become the
// whole number 1, and 010 in place of a text would become 8.
func (f *File) fits(node ast.Node, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, null := node.(*ast.NullNode); null {
		return nil
	}
	wrong := func(want string) error {
		return fmt.Errorf("%s:%d: %s: must be %s", f.name, firstLine(node), orFile(path), want)
	}
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[time.Duration]():
		if d, err := time.ParseDuration(textOf(node)); err != nil || d < 0 {
			return wrong("a length of time, such as 5ms or 1s, not " + strconv.Quote(sendgate.Clip(node.GetToken().Value)))
		}
	case kind == reflect.Struct || kind == reflect.Map:
		members, ok := membersOf(node)
		if !ok {
			return wrong("a mapping")
		}
		return f.membersFit(members, t, path)
	case kind == reflect.Slice:
		list, ok := node.(*ast.SequenceNode)
		if !ok {
			return wrong("a list")
		}
		for i, item := range list.Values {
			if err := f.fits(item, t.Elem(), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	case kind == reflect.Int:
		if _, ok := node.(*ast.IntegerNode); !ok {
			return wrong("a whole number")
		}
	case kind == reflect.Float64:
		if !isNumber(node) {
			return wrong("a number, such as 0.001")
		}
	case kind == reflect.Bool:
		if _, ok := node.(*ast.BoolNode); !ok {
			return wrong("true or false")
		}
	case kind == reflect.String:
		switch node.(type) {
		case *ast.StringNode, *ast.LiteralNode, *ast.BoolNode:
		default:
			return wrong("text; a number is put in quotes")
		}
	}
	return nil
}

func (f *File) membersFit(members []*ast.MappingValueNode, t reflect.Type, path string) error {
	for _, m := range members {
		name := m.Key.GetToken().Value
		if _, ok := m.Key.(*ast.StringNode); !ok {
			return fmt.Errorf("%s:%d: %s: a name must be text; %q is put in quotes", f.name, firstLine(m.Key), orFile(path), sendgate.Clip(name))
		}
		of := memberType(t, name)
		if of == nil {
			return fmt.Errorf("%s:%d: %s: there is no member %q", f.name, firstLine(m.Key), orFile(path), sendgate.Clip(name))
		}
		if err := f.fits(m.Value, of, strings.TrimPrefix(path+"."+name, ".")); err != nil {
			return err
		}
	}
	return nil
}

// memberType is the type of the member that a name stands for, or nil.
func memberType(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for field := range t.Fields() {
		if tag, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); tag == name && tag != "-" {
			return field.Type
		}
	}
	return nil
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

// isNumber tells whether a node is a number, of which some are none or have no
// end: their member's range says so. One without a point, such as 1e-6, is a
// text to the parser, and a number to the library all the same.
func isNumber(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.FloatNode, *ast.IntegerNode, *ast.InfinityNode, *ast.NanNode:
		return true
	case *ast.StringNode:
		number, err := strconv.ParseFloat(n.Value, 64)
		return err == nil && !math.IsInf(number, 0) && !math.IsNaN(number) && n.Token.Type == token.StringType
	}
	return false
}

func textOf(node ast.Node) string {
	if s, ok := node.(*ast.StringNode); ok {
		return s.Value
	}
	return ""
}
