package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// product parses the product's Go files, but for its tests.
var product = sync.OnceValues(func() (files []*ast.File, err error) {
	positions := token.NewFileSet()
	tree := os.DirFS(root)
	err = fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "deploy" || path != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(positions, path, source, parser.SkipObjectResolution)
		files = append(files, file)
		return err
	})
	return files, err
})

func inspect(t *testing.T, visit func(ast.Node) bool) {
	t.Helper()
	files, err := product()
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		ast.Inspect(f, visit)
	}
}

// metrics finds every metric of the product in its source, with its labels: a
// counter that has counted nothing yet does not show at /metrics.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	inspect(t, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		name := text(call.Args[0])
		if options, ok := call.Args[0].(*ast.CompositeLit); ok {
			for _, e := range options.Elts {
				if member, ok := e.(*ast.KeyValueExpr); ok && isNamed(member.Key, "Name") {
					name = text(member.Value)
				}
			}
		}
		if !strings.HasPrefix(name, "sendgate_") {
			return true
		}
		var labels []string
		for _, arg := range call.Args[1:] {
			if list, ok := arg.(*ast.CompositeLit); ok {
				for _, e := range list.Elts {
					labels = append(labels, text(e))
				}
			}
		}
		found[name] = labels
		return true
	})
	return found
}

// literals are all texts in the product's source.
func literals(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	inspect(t, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			words[text(e)] = true
		}
		return true
	})
	delete(words, "")
	return words
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// text is the value of a text literal, and nothing for any other expression.
func text(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}
