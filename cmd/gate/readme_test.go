package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs every command of the README that shows what it prints, in
// order, and holds the output against what is shown.
func TestReadme(t *testing.T) { runsAsShown(t, "../../README.md", 7) }

func TestTheDocumentationOfLimits(t *testing.T) { runsAsShown(t, "../../docs/limits.md", 4) }

// runsAsShown runs a document's commands, of which there are so many at least.
func runsAsShown(t *testing.T, path string, least int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gate := start(t, "dev", "--addr", "127.0.0.1:0", "--data", t.TempDir())
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for _, shown := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(shown, "\n")
			real := strings.ReplaceAll(command, "http://127.0.0.1:8080", gate.url)
			if rest, ok := strings.CutPrefix(real, "go run ./cmd/gate "); ok {
				real = os.Args[0] + " " + rest + " --url " + gate.url
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c", real)
			cmd.Env = append(os.Environ(), asGate+"=1")
			out, err := cmd.CombinedOutput()
			if got := timeless(string(out)); err != nil || got != timeless(want) {
				t.Errorf("$ %s\n(%v) got\n%s\nwant\n%s", command, err, got, timeless(want))
			}
			ran++
		}
	}
	if ran < least {
		t.Errorf("only %d commands were found", ran)
	}
}

// passing is what differs from run to run: the present time and how long
// things took. Instants that a command fixes stay.
var passing = regexp.MustCompile(`"(resets_at|updated_at|effective_at)":"[^"]*"|\(\d+ µs\)`)

func timeless(output string) string {
	return strings.TrimSpace(passing.ReplaceAllString(output, "$1"))
}
