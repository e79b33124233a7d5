package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// dockerfiles are all that an image is built with, by path from the root.
var dockerfiles = []string{"Dockerfile", "deploy/dynalite.Dockerfile"}

// stagesOf parses a Dockerfile.
func stagesOf(t *testing.T, path string) []instructions.Stage {
	t.Helper()
	f, err := os.Open(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, w := range parsed.Warnings {
		t.Errorf("%s: %s", path, w.Short)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil || len(stages) == 0 {
		t.Fatalf("%s: %d stages, %v", path, len(stages), err)
	}
	return stages
}

// all are the commands of one kind in a stage.
func all[C instructions.Command](s instructions.Stage) (found []C) {
	for _, c := range s.Commands {
		if c, ok := c.(C); ok {
			found = append(found, c)
		}
	}
	return found
}

// one is the only command of its kind in a stage.
func one[C instructions.Command](t *testing.T, s instructions.Stage) (only C) {
	t.Helper()
	found := all[C](s)
	if len(found) != 1 {
		t.Fatalf("%d commands of type %T, not one", len(found), only)
	}
	return found[0]
}

var (
	pinned  = regexp.MustCompile(`^[a-z./-]+:v?\d+\.\d+\.\d+(-[a-z-]+)?(@sha256:[0-9a-f]{64})?$`)
	numeric = regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`)
)

func TestEveryImageIsPinnedAndOfNoRoot(t *testing.T) {
	for _, path := range dockerfiles {
		stages := stagesOf(t, path)
		for _, s := range stages {
			if s.BaseName != "scratch" && !pinned.MatchString(s.BaseName) {
				t.Errorf("%s begins with %s, which is no exact version", path, s.BaseName)
			}
		}
		last := stages[len(stages)-1]
		if user := one[*instructions.UserCommand](t, last).User; !numeric.MatchString(user) {
			t.Errorf("%s: user %q is no number and group, or root", path, user)
		}
		for _, c := range all[*instructions.CmdCommand](last) {
			if c.PrependShell {
				t.Errorf("%s: CMD goes through a shell, which takes no signals", path)
			}
		}
	}
}

// TestTheImageHasNothingButThePrograms also holds that what is in the image is
// where the programs and gate.yaml look for it.
func TestTheImageHasNothingButThePrograms(t *testing.T) {
	stages := stagesOf(t, "Dockerfile")
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the last stage begins with %s", last.BaseName)
	}
	if len(all[*instructions.RunCommand](last)) > 0 || len(all[*instructions.HealthCheckCommand](last)) > 0 {
		t.Error("the last stage runs something, and has nothing to run it with")
	}
	var copied []string
	for _, c := range all[*instructions.CopyCommand](last) {
		if c.From != stages[0].Name {
			t.Errorf("%s does not come from the stage that builds", c)
		}
		copied = append(copied, c.DestPath)
	}
	if want := []string{"/", "/etc/ssl/certs/ca-certificates.crt"}; !slices.Equal(copied, want) { // where crypto/x509 looks
		t.Errorf("copied are %v, want %v", copied, want)
	}
	made := shellOf(t, stages[0], "mkdir")
	owned := shellOf(t, stages[0], "chown")
	for _, folder := range []string{"/var/lib/sendgate/filters", "/var/cache/sendgate", "/tmp"} {
		if !strings.Contains(made, " /image"+folder) {
			t.Errorf("%s is not made", folder)
		}
	}
	if user := one[*instructions.UserCommand](t, last).User; !strings.Contains(owned, "chown -R "+user+" /image/var/lib/sendgate /image/var/cache/sendgate") {
		t.Errorf("%q gives the folders to somebody else than %s", owned, user)
	}
}

// shellOf is the one shell command of a stage that has a word in it.
func shellOf(t *testing.T, s instructions.Stage, word string) (command string) {
	t.Helper()
	for _, r := range all[*instructions.RunCommand](s) {
		if line := strings.Join(r.CmdLine, " "); strings.Contains(line, word) {
			if command != "" {
				t.Fatalf("%q is in two commands", word)
			}
			command = line
		}
	}
	if command == "" {
		t.Fatalf("no command has %q", word)
	}
	return command
}

// TestTheBuildersGoIsNewEnough holds the image that builds to go.mod.
func TestTheBuildersGoIsNewEnough(t *testing.T) {
	_, tag, _ := strings.Cut(stagesOf(t, "Dockerfile")[0].BaseName, ":")
	version, _, _ := strings.Cut(tag, "-")
	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)\.(\d+)$`).FindStringSubmatch(read(t, filepath.Join(root, "go.mod")))
	if wanted == nil || !strings.HasPrefix(version, wanted[1]+".") {
		t.Errorf("Go %s builds a module of %v", version, wanted)
	}
}

func ignored(t *testing.T) func(path string) bool {
	t.Helper()
	patterns, err := ignorefile.ReadAll(strings.NewReader(read(t, filepath.Join(root, ".dockerignore"))))
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return func(path string) bool {
		out, err := matcher.MatchesOrParentMatches(path)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// TestTheContextHasWhatTheImagesAreBuiltFrom holds .dockerignore to the files
// that COPY names and that the compiler reads, and to no others.
func TestTheContextHasWhatTheImagesAreBuiltFrom(t *testing.T) {
	out := ignored(t)
	needed := sourcesOf(t, packagesBuilt(t))
	for _, path := range dockerfiles {
		for _, s := range stagesOf(t, path) {
			for _, c := range all[*instructions.CopyCommand](s) {
				if c.From == "" {
					needed = append(needed, c.SourcePaths...)
				}
			}
		}
	}
	for _, path := range needed {
		if path = filepath.Clean(path); path == "." {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("an image is built from what is not there: %v", err)
		} else if out(path) {
			t.Errorf("%s is kept out of the build", path)
		}
	}
	for _, path := range []string{
		".git/config", ".env", "gate.yaml", "sendgate.db", "data/sendgate.db", "bin/gate", "gate_test.go",
		"api/api_test.go", "tools/node_modules/dynalite/index.js", "deploy/gate.yaml", "e2e/doc.go", "testdata/quiet.jsonl",
	} {
		if !out(path) {
			t.Errorf("%s gets into the build", path)
		}
	}
}

// sourcesOf lists the module's files that packages are compiled from.
func sourcesOf(t *testing.T, packages []string) (files []string) {
	t.Helper()
	const format = `{{if and .Module .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", format}, packages...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	list, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Fields(string(list)) {
		rel, err := filepath.Rel(top, file)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, rel)
	}
	if len(files) < 50 {
		t.Fatalf("only %d files", len(files))
	}
	return files
}
