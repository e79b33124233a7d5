package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// commands are Redis' own counts of commands, by kind. What a script calls
// counts as well, beside the call of the script.
type commands map[string]int

func (f *fleet) commands() commands {
	f.t.Helper()
	info, err := f.client.Info(f.t.Context(), "commandstats").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	counts := commands{}
	for line := range strings.Lines(info) {
		kind, figures, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok || kind == "info" { // that is this
			continue
		}
		calls, _, _ := strings.Cut(figures, ",")
		n, err := strconv.Atoi(calls)
		if err != nil {
			f.t.Fatalf("Redis counts %q", line)
		}
		counts[kind] = n
	}
	return counts
}

// since is what has been counted since some earlier counts.
func (c commands) since(before commands) commands {
	more := commands{}
	for kind, n := range c {
		if n > before[kind] {
			more[kind] = n - before[kind]
		}
	}
	return more
}

// without leaves the kinds of other counts out.
func (c commands) without(other commands) commands {
	left := maps.Clone(c)
	maps.DeleteFunc(left, func(kind string, _ int) bool { return other[kind] > 0 })
	return left
}

func (c commands) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, c[kind]))
	}
	return strings.Join(parts, ", ")
}

// background is what gates send while nobody asks them anything: observed for
// as long as it takes every one of them to look at every change stream twice.
func (f *fleet) background(t *testing.T) commands {
	t.Helper()
	before := f.commands()
	until(t, "the gates look at the change streams", func() bool {
		return f.commands().since(before)["xrange"] >= 2*len(f.gates)*partitions
	})
	return f.commands().since(before)
}
