package main

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/rebuild"
)

// onScreen is what a terminal shows in the end, line by line: what was drawn
// last. The spinner and the time are left out.
func onScreen(written string) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(written, "\n"), "\n") {
		line = line[strings.LastIndexByte(line, '\r')+1:]
		lines = append(lines, strings.TrimSpace(spinner.ReplaceAllString(line, "")))
	}
	return lines
}

var spinner = regexp.MustCompile(`^[⠀-⣿] |, [0-9]+ records/\w+|\[[^]]*\]`)

func TestBar(t *testing.T) {
	built := someFilter(t)
	var out bytes.Buffer
	b := newBar(&out)
	draw := func(built *bloom.Built, err error, stages ...rebuild.Stage) []string {
		out.Reset()
		for _, s := range stages {
			b.Stage(s)
			if s == rebuild.StageBuild {
				for range 1234 {
					b.Read(1)
				}
			}
		}
		b.Done(built, err)
		return onScreen(out.String())
	}
	for range 2 { // rebuilds, one after the other
		got := draw(built, nil, rebuild.StageMark, rebuild.StageBuild, rebuild.StagePublish)
		if want := []string{"mark", "read and build (1234/-)", "publish", "generation 7: 1 opt-outs, 0 opt-ins, "}; len(got) != 4 ||
			!slices.Equal(got[:3], want[:3]) || !strings.HasPrefix(got[3], want[3]) {
			t.Errorf("%q", got)
		}
	}
	if got := draw(nil, errors.New("broken"), rebuild.StageMark); !slices.Equal(got, []string{"mark", "no new filter was built: broken"}) {
		t.Errorf("it failed: %q", got)
	}
	if got := draw(nil, errors.New("broken")); !slices.Equal(got, []string{"no new filter was built: broken"}) {
		t.Errorf("it failed before it began: %q", got)
	}
	if got := draw(built, errors.New("broken"), rebuild.StageMark, rebuild.StageBuild, rebuild.StagePublish); len(got) != 5 || got[3] != "not all that follows was done: broken" {
		t.Errorf("it was published, and no more: %q", got)
	}
}

// someFilter is one of a single opt-out.
func someFilter(t *testing.T) *bloom.Built {
	t.Helper()
	r := record("u", promotions(false))
	var keys iter.Seq2[bloom.Key, error] = func(yield func(bloom.Key, error) bool) {
		for k := range bloom.KeysOf(sendgate.ConsentOf(r.User, &r.Preferences), func(sendgate.Setting) bool { return false }) {
			if !yield(k, nil) {
				return
			}
		}
	}
	built, err := bloom.Build(context.Background(), bloom.Plan{
		Namespace: "t", Generation: 7, BuiltAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Memory: 1 << 20, MaxFalsePositive: 0.001, AimFalsePositive: 1e-6,
		Position: sendgate.Position{Token: "mark", Offsets: []sendgate.Offset{{Millis: 1}}},
	}, keys)
	if err != nil {
		t.Fatal(err)
	}
	return built
}
