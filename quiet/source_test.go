package quiet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestSource holds the package to what a decision as pure computation may use:
// no clock, no files or environment, no lookup of zones on the machine, and no
// instants that are built from wall-clock times.
func TestSource(t *testing.T) {
	imports := []string{"archive/zip", "embed", "fmt", "io", "math", "slices", "strconv", "strings", "sync", "time"}
	forbidden := []string{
		"Now", "Since", "Until", "Sleep", "After", "NewTimer", "Tick", // the clock
		"LoadLocation", "Local", // the machine's zones
		"Date", "IsDST", "ParseInLocation", // guesses about the wall clock
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		checked++
		set := token.NewFileSet()
		source, err := parser.ParseFile(set, file.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range source.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); !slices.Contains(imports, path) {
				t.Errorf("%s: imports %s", set.Position(spec.Pos()), path)
			}
		}
		ast.Inspect(source, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(forbidden, s.Sel.Name) {
				t.Errorf("%s: uses %s", set.Position(s.Pos()), s.Sel.Name)
			}
			return true
		})
	}
	if checked == 0 {
		t.Error("no source was found")
	}
}
