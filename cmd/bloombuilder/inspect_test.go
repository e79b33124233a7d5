package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/catalogfile"
)

func TestInspectRefuses(t *testing.T) {
	i := install(t)
	i.store(record("out", promotions(false)))
	if _, log, err := runs(t.Context(), "--once", "--config", i.conf); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	file, err := os.ReadFile(i.only())
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), file...)
	flipped[len(flipped)-1] ^= 1
	for name, c := range map[string]struct {
		content []byte
		says    string
	}{
		"damaged.filter": {flipped, "damaged"},
		"cut.filter":     {file[:len(file)-8], "cut off"},
		"empty.filter":   {nil, "too few"},
		"catalog.yaml":   {catalogfile.SampleYAML(), "not a snapshot"},
	} {
		path := filepath.Join(t.TempDir(), name)
		writeFile(t, path, string(c.content))
		out, _, err := runs(t.Context(), "inspect", path)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.says) || out != "" {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing.filter")
	if _, _, err := runs(t.Context(), "inspect", missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing file: %v", err)
	}
	if _, _, err := runs(t.Context(), "inspect", i.dir); err == nil || !strings.Contains(err.Error(), i.dir) {
		t.Errorf("a folder: %v", err)
	}
	if _, _, err := runs(t.Context(), "inspect", "--probes=0", i.only()); err == nil || !strings.Contains(err.Error(), "--probes") {
		t.Errorf("no probes: %v", err)
	}
}
