package redistest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Commands are how often Redis was asked for each command. What a script calls
// counts as well, beside the call of the script.
type Commands map[string]int

// CommandsOf reads Redis' own counts, but that of this very question.
func CommandsOf(t testing.TB, client redis.UniversalClient) Commands {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	counts := Commands{}
	for line := range strings.Lines(info) {
		kind, figures, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok || kind == "info" {
			continue
		}
		calls, _, _ := strings.Cut(figures, ",")
		n, err := strconv.Atoi(calls)
		if err != nil {
			t.Fatalf("Redis counts %q", line)
		}
		counts[kind] = n
	}
	return counts
}

// Since is what has been counted since some earlier counts.
func (c Commands) Since(before Commands) Commands {
	more := Commands{}
	for kind, n := range c {
		if n > before[kind] {
			more[kind] = n - before[kind]
		}
	}
	return more
}

// Without leaves the kinds of other counts out.
func (c Commands) Without(other Commands) Commands {
	left := maps.Clone(c)
	maps.DeleteFunc(left, func(kind string, _ int) bool { return other[kind] > 0 })
	return left
}

// Total is the sum of all.
func (c Commands) Total() (sum int) {
	for _, n := range c {
		sum += n
	}
	return sum
}

// String lists the counts by name.
func (c Commands) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, c[kind]))
	}
	return strings.Join(parts, ", ")
}

// Per lists the counts for one of n, the most frequent first, and leaves out
// what is rare.
func (c Commands) Per(n int) string {
	kinds := slices.SortedFunc(maps.Keys(c), func(a, b string) int { return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, kind := range kinds {
		if each := float64(c[kind]) / float64(max(1, n)); each >= 0.005 {
			parts = append(parts, fmt.Sprintf("%s %.2f", kind, each))
		}
	}
	return strings.Join(parts, ", ")
}
