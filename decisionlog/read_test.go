package decisionlog_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/decisionlog"
)

func TestLinesThatAreNoEntries(t *testing.T) {
	good, cap := line("good", 10), `{"kind":"rolling","window":"24h","limit":5}`
	entry := func(member, with string) string {
		return strings.Replace(strings.TrimSuffix(line("bad", 5), "\n"), member, with, 1) + "\n"
	}
	for _, c := range []struct{ name, bad string }{
		{"not JSON", "hello\n"},
		{"two at once", strings.TrimSuffix(line("a", 1), "\n") + line("b", 2)},
		{"torn, and a gate goes on", line("a", 1)[:30] + "\n"},
		{"another version", entry(`"v":1`, `"v":2`)},
		{"an unknown kind", entry(`"decision"`, `"guess"`)},
		{"nobody", entry(`"user":"u",`, ``)},
		{"an unknown verdict", entry(`"allow"`, `"perhaps"`)},
		{"an unknown outcome", entry(`"decision"`, `"outcome"`)},
		{"before 1970", entry(`"at":5`, `"at":-5`)},
		{"after the year 9999", entry(`"at":5`, `"at":253402300800000`)},
		{"an unknown kind of cap", entry(`"rolling"`, `"square"`)},
		{"no window", entry(`"window":"24h",`, ``)},
		{"a window of no length", entry(`"24h"`, `"x"`)},
		{"fields without values", entry(`"rolling"`, `"rolling","by":["channel"]`)},
		{"a subject without an id", entry(`"rolling"`, `"rolling","subject":"household_id"`)},
		{"a limit beyond all", entry(`"limit":5`, `"limit":10001`)},
		{"buckets that do not fit", entry(cap[1:17], `"kind":"buckets","buckets":7,"remember":"24h"`)},
		{"a period that is none", entry(`"rolling"`, `"calendar","remember":"24h","period":"year"`)},
		{"too long", entry(`"topic"`, ``)[:10] + strings.Repeat(" ", 2<<20) + "}\n"},
	} {
		path := write(t, "d", opened, good, c.bad, line("after", 20))
		_, _, err := readAll(t, decisionlog.ReadOptions{}, path)
		if err == nil || !strings.Contains(err.Error(), path+", line 3: ") {
			t.Errorf("%s: %v", c.name, err)
		}
		entries, stats, err := readAll(t, decisionlog.ReadOptions{SkipBad: true}, path)
		if got := ids(entries); err != nil || got != "good after" || stats.Bad.Count != 1 || stats.Torn.Count != 0 {
			t.Errorf("%s, skipped: %s, %+v, %v", c.name, got, stats, err)
		}
	}
}

func TestTornLines(t *testing.T) {
	half := line("torn", 3)[:60]
	for _, c := range []struct {
		name, text, want string
		torn             int
	}{
		{"at the end", line("a", 1) + half, "a", 1},
		{"at the end, whole but for its ending", line("a", 1) + strings.TrimSuffix(line("b", 2), "\n"), "a b", 0},
		{"before a gate that starts", line("a", 1) + half + "\n" + opened + line("b", 2), "a b", 1},
		{"before a gap", half + "\n" + `{"v":1,"kind":"gap","at":2,"lost":7}` + "\n" + line("b", 2), "b", 1},
		{"and nothing else", half, "", 1},
		{"nothing at all", "", "", 0},
		{"blank lines", "\n\n" + line("a", 1) + "\r\n", "a", 0},
	} {
		entries, stats, err := readAll(t, decisionlog.ReadOptions{}, write(t, "d", c.text))
		if got := ids(entries); err != nil || got != c.want || stats.Torn.Count != c.torn || stats.Bad.Count != 0 {
			t.Errorf("%s: %q, %+v, %v", c.name, got, stats, err)
		}
	}
	if _, _, err := readAll(t, decisionlog.ReadOptions{}, write(t, "d", half+"\n"+half)); err == nil {
		t.Error("a bad line before a torn one was taken for torn")
	}
}

// TestSeveralLogs reads what several gates have written, and rotated, as one.
func TestSeveralLogs(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range int64(100) {
		if _, err := z.Write([]byte(line("p", 1+i*1000))); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	later, other := "", ""
	for i := range int64(100) {
		later += line("l", 200_000+(i^1)*1000) // a little out of order
		other += line("o", i*3000)
	}
	paths := []string{write(t, "later", later), write(t, "d.gz", packed.String()), write(t, "other", other), write(t, "empty", "")}
	n, before := 0, int64(math.MinInt64)
	stats, err := decisionlog.Read(context.Background(), paths, decisionlog.ReadOptions{}, func(e *decisionlog.Entry, b int64) error {
		if e.At < b || b < before {
			t.Errorf("%d came after nothing before %d was to come, and %d", e.At, b, before)
		}
		n, before = n+1, b
		return nil
	})
	if err != nil || n != 300 || stats.Entries != 300 || before < 200_000 {
		t.Errorf("%d entries up to %d, %+v, %v", n, before, stats, err)
	}
	// A log that ends in the middle of what was packed.
	entries, stats, err := readAll(t, decisionlog.ReadOptions{}, write(t, "d.gz", packed.String()[:packed.Len()-9]))
	if err != nil || len(entries) == 0 || stats.Entries > 100 {
		t.Errorf("%d entries, %+v, %v", len(entries), stats, err)
	}
}

func TestReadEnds(t *testing.T) {
	path, stop := write(t, "d", line("a", 1), line("b", 2)), errors.New("stop")
	if _, err := decisionlog.Read(context.Background(), []string{path}, decisionlog.ReadOptions{}, func(*decisionlog.Entry, int64) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := decisionlog.Read(ctx, []string{path}, decisionlog.ReadOptions{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, paths := range [][]string{nil, {filepath.Join(t.TempDir(), "none")}, {write(t, "d.gz", "no gzip")}} {
		if _, _, err := readAll(t, decisionlog.ReadOptions{}, paths...); err == nil {
			t.Errorf("%v was read", paths)
		}
	}
}
