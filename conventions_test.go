package sendgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sendgate/sendgate"

// mayImport says which packages of the module a package may import: imports
// point one way, and adapters never import each other. Packages that are not
// listed put others together (cmd, node, tests' helpers).
var mayImport = map[string][]string{
	"quiet":              {},
	".":                  {"quiet"},
	"keyspace":           {"."},
	"limits":             {"."},
	"guard":              {},
	"client":             {".", "guard"},
	"redisconn":          {},
	"yamlfile":           {"."},
	"catalogfile":        {".", "yamlfile"},
	"config":             {".", "keyspace", "redisconn", "yamlfile"},
	"bloom":              {"."},
	"bloom/archive":      {},
	"backend":            {"bloom/archive", "config", "prefs", "prefs/boltstore", "prefs/dynamostore", "redisconn"},
	"rebuild":            {".", "bloom", "bloom/archive", "prefs"},
	"internal/cli":       {},
	"feed":               {".", "keyspace", "redisconn"},
	"freqcap":            {".", "keyspace", "guard", "redisconn"},
	"metrics":            {"."},
	"prefs":              {".", "quiet", "guard", "limits"},
	"prefs/boltstore":    {".", "limits", "prefs"},
	"prefs/dynamostore":  {".", "limits", "prefs"},
	"prefs/rediscache":   {".", "keyspace", "prefs", "redisconn"},
	"prefs/redisshares":  {"keyspace", "prefs"},
	"api":                {".", "quiet", "limits", "prefs"},
	"decisionlog":        {".", "quiet"},
	"decisionlog/replay": {".", "quiet", "decisionlog"},
	"decisionlog/refill": {"."},
}

// TestConventions holds the source to what ARCHITECTURE.md promises.
func TestConventions(t *testing.T) {
	documented := map[string]bool{}
	for file, parsed := range sources(t) {
		dir := path.Dir(file)
		documented[dir] = documented[dir] || parsed.Doc != nil
		if dir == "quiet" {
			onlyStandardLibrary(t, file, parsed)
		}
		if allowed, listed := mayImport[dir]; listed {
			for _, imported := range ownImports(parsed) {
				if !slices.Contains(allowed, imported) {
					t.Errorf("%s imports %s, which package %s may not", file, imported, dir)
				}
			}
		}
		mayTellTime := strings.HasPrefix(file, "cmd/") || file == "clock.go"
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch x, _ := s.X.(*ast.Ident); {
			case s.Sel.Name == "IsDST":
				t.Errorf("%s asks IsDST: walk the offset changes", file)
			case x == nil || x.Name != "time":
			case s.Sel.Name == "Now" && !mayTellTime:
				t.Errorf("%s asks the machine for the time: take a clock", file)
			case s.Sel.Name == "LoadLocation":
				t.Errorf("%s loads a zone from the machine: use quiet.LoadZone", file)
			}
			return true
		})
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// sources parses every Go file of the module but tests and tools.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (file == "tools" || file == "deploy" || strings.HasPrefix(file, ".") && file != "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		files[file] = parsed
		return err
	})
	if err != nil || len(files) < 20 {
		t.Fatalf("%d source files: %v", len(files), err)
	}
	return files
}

func ownImports(f *ast.File) (own []string) {
	for _, i := range f.Imports {
		imported := strings.Trim(i.Path.Value, `"`)
		if imported == module {
			own = append(own, ".")
		} else if rest, ok := strings.CutPrefix(imported, module+"/"); ok {
			own = append(own, rest)
		}
	}
	return own
}

func onlyStandardLibrary(t *testing.T, file string, f *ast.File) {
	t.Helper()
	for _, i := range f.Imports {
		if strings.Contains(i.Path.Value, ".") {
			t.Errorf("%s imports %s: package quiet imports the standard library only", file, i.Path.Value)
		}
	}
}
