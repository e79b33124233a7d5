package quiet

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestGolden holds the package to answers that were made by reading the clock
// second by second. The environment variable SENDGATE_CASES names another folder
// with a quiet.jsonl.
func TestGolden(t *testing.T) {
	folder := "../testdata"
	if other := os.Getenv("SENDGATE_CASES"); other != "" {
		folder = other
	}
	data, err := os.ReadFile(filepath.Join(folder, "quiet.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		cases++
		checkGolden(t, i+1, line)
	}
	if cases == 0 {
		t.Fatal("no cases")
	}
	t.Logf("%d cases", cases)
}

func checkGolden(t *testing.T, number int, line []byte) {
	t.Helper()
	var c struct {
		Timezone string
		Window   struct {
			Start, End string
			Days       []string
		}
		At      time.Time
		Quiet   bool
		Until   time.Time // zero: it does not open, or is not quiet
		Because string
	}
	if err := json.Unmarshal(line, &c); err != nil {
		t.Errorf("line %d: %v", number, err)
		return
	}
	h := Hours{Quiet: []Window{mustWindow(t, c.Window.Start, c.Window.End, c.Window.Days...)}}
	z := mustZone(t, c.Timezone)
	open, ok := h.NextOpen(c.At, z)

	wantOK := !c.Quiet || !c.Until.IsZero()
	want := c.At
	if c.Quiet {
		want = c.Until
	}
	if ok != wantOK || ok && !open.Equal(want) {
		t.Errorf("line %d: got %s, %t; want %s, %t: %s", number, open, ok, want, wantOK, line)
	}
	if quiet := !ok || open.After(c.At); quiet != c.Quiet {
		t.Errorf("line %d: quiet is %t: %s", number, quiet, line)
	}
}
