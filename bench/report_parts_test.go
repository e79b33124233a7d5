package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/sendgate/sendgate/catalogfile"
)

func TestRowsSayWhatWasAimedAt(t *testing.T) {
	for _, c := range []struct {
		row  row
		want string
	}{
		{row{what: "a", base: "b", ratio: 0.5, aim: atLeast(0.5), absolute: "1 : 2"}, "| a | b | 0.50 |  | ≥ 0.5 | met | 1 : 2 |\n"},
		{row{what: "a", base: "b", ratio: 3.01, aim: atMost(3), spread: "2.00–4.00"}, "| a | b | 3.01 | 2.00–4.00 | ≤ 3 | **missed** |  |\n"},
		{row{what: "a|b", ratio: 0, aim: atMost(0), short: "of few"}, "| a\\|b |  | 0 |  | ≤ 0 | met, but of few |  |\n"},
		{row{what: "a", failed: errors.New("none"), aim: atMost(0)}, "| a |  | – |  | ≤ 0 | not measured: none |  |\n"},
	} {
		if got := table([]string{"h"}, [][]string{c.row.cells()}); got != "| h |\n| --- |\n"+c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestRatioIsTheMedianOfTurns(t *testing.T) {
	var p pairs
	for _, turn := range [][2]float64{{10, 10}, {3, 1}, {100, 50}} { // the machine was busy in the last
		p.add(turn[0], turn[1])
	}
	if p.ratio() != 2 || p.spread() != "1.00–3.00" {
		t.Errorf("%v, %s", p.ratio(), p.spread())
	}
}

func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.456: "0.46", 12.34: "12.3", 123.4: "123", 5: "5"} {
		if got := number(x); got != want {
			t.Errorf("%v is written %s, not %s", x, got, want)
		}
	}
	for x, want := range map[float64]string{7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(x); got != want {
			t.Errorf("%v is written %s, not %s", x, got, want)
		}
	}
	if a, b := micros(1234*time.Microsecond), micros(12345*time.Microsecond); a != "1,234 µs" || b != "12.3 ms" {
		t.Errorf("%s, %s", a, b)
	}
}

func TestLatencies(t *testing.T) {
	l := newLatencies()
	for i := range 1000 {
		l.add(time.Duration(i+1) * time.Microsecond)
	}
	l.add(time.Hour)
	if p50, p100 := l.at(50), l.at(100); p50 < 499*time.Microsecond || p50 > 502*time.Microsecond || p100 < 59*time.Second {
		t.Errorf("%s, %s", p50, p100)
	}
}

func TestWhatProgramsPrintIsRead(t *testing.T) {
	rate, err := parseBenchmark("\"test\",\"rps\",\"avg_latency_ms\"\n\"evalsha abc 1 cap:__rand_int__ 1000\",\"43956.04\",\"1.2\"\n")
	if err != nil || rate != 43956.04 {
		t.Errorf("%v, %v", rate, err)
	}
	if _, err := parseBenchmark("ERR"); err == nil {
		t.Error("no rate was read as one")
	}
	r, err := parseReject(`
BenchmarkReject/plain_Test,_key_made_before-2    	  100	  1000 ns/op	   0 B/op	  0 allocs/op
BenchmarkReject/plain_Test,_key_made-2           	  100	  1100 ns/op	  48 B/op	  1 allocs/op
BenchmarkReject/overlay_and_filter-2             	  100	  800.5 ns/op	  0 B/op	  0 allocs/op
BenchmarkReject/overlay_and_filter-2             	  100	  700.5 ns/op	  0 B/op	  2 allocs/op
`)
	if want := (rejected{plain: 1000, ours: 800.5, allocations: 2}); err != nil || r != want {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := parseReject("PASS"); err == nil {
		t.Error("figures were read where there are none")
	}
}

// TestChecksAreOfTheMix draws many checks.
func TestChecksAreOfTheMix(t *testing.T) {
	if _, err := catalogfile.Parse("catalog.yaml", []byte(catalog)); err != nil {
		t.Fatal(err)
	}
	for _, share := range shares {
		c := people{10_000}.crowd(share)
		const n = 50_000
		out, seen, times := 0, map[uint64]bool{}, map[int]int{}
		for range n {
			i, id, _ := c.draw()
			if i < 0 || i >= 10_000 || seen[id] {
				t.Fatalf("user %d, notification %d", i, id)
			}
			seen[id] = true
			times[i/2]++
			if optedOut(i) {
				out++
			}
		}
		if got := 100 * float64(out) / n; math.Abs(got-float64(share)) > 1.5 {
			t.Errorf("%.1f %% are opted out, not %d", got, share)
		}
		if want := math.Pow(float64(zipfV)/float64(zipfV+90), zipfS); math.Abs(float64(times[90])/float64(times[0])-want) > want/2 {
			t.Errorf("the 91st is asked about %d times, the first %d", times[90], times[0])
		}
	}
	var batch struct {
		Checks []struct {
			UserID string `json:"user_id"`
		}
	}
	if err := json.Unmarshal(people{100}.crowd(70).batch(), &batch); err != nil || len(batch.Checks) != batchSize || batch.Checks[0].UserID == "" {
		t.Errorf("%d checks: %v", len(batch.Checks), err)
	}
}

// TestPlotsAreTheSameAgain draws the same figures twice.
func TestPlotsAreTheSameAgain(t *testing.T) {
	dir := t.TempDir()
	draw := func(name string) []byte {
		path := filepath.Join(dir, name)
		err := drawLines(path, "t", "x", "y", true, []series{{name: "a", points: plotter.XYs{{X: 1, Y: 0.2}, {X: 2, Y: 300}}}, {name: "b", dashed: true, points: plotter.XYs{{X: 1, Y: 1}, {X: 2, Y: 2}}}})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if a, b := draw("a.svg"), draw("b.svg"); !bytes.Equal(a, b) || len(a) > 64<<10 || !bytes.Contains(a, []byte("<svg")) {
		t.Errorf("%d and %d bytes", len(a), len(b))
	}
	if err := drawBars(filepath.Join(dir, "c.svg"), "t", "x", []bar{{"one", 1}, {"two", 2}}); err != nil {
		t.Error(err)
	}
}
