package config

import (
	"fmt"
	"math"
	"strings"

	bytesize "github.com/dustin/go-humanize" //nolint:misspell // is its name
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/sendgate/sendgate"
)

// Size is a number of bytes, written as `512MiB` (of 1024), `2GB` (of 1000) or
// a plain number.
type Size int64

// UnmarshalText reads a size. A comma is refused: it parts thousands for some
// and begins the fraction for others.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := bytesize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 || strings.Contains(string(text), ",") {
		return fmt.Errorf("must be a size, such as 512MiB or 2GB, not %q", sendgate.Clip(string(text)))
	}
	*s = Size(n)
	return nil
}

// UnmarshalYAML does the same with a value in a file, so that a fault has its
// line.
func (s *Size) UnmarshalYAML(node ast.Node) error {
	text := ""
	switch node.(type) {
	case *ast.StringNode, *ast.IntegerNode:
		text = node.GetToken().Value
	}
	if err := s.UnmarshalText([]byte(text)); err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	return nil
}

// String writes a size to two digits, with its unit.
func (s Size) String() string {
	if s < 0 {
		return fmt.Sprintf("%d B", int64(s))
	}
	return bytesize.IBytes(uint64(s))
}
