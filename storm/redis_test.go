package storm_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// counts are how often Redis was asked for each command. What a script calls is
// counted beside the script.
type counts map[string]int64

var commandLine = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+)`)

// commands reads Redis' own counts.
func (f *fleet) commands() counts {
	f.t.Helper()
	info, err := f.client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	c := counts{}
	for _, m := range commandLine.FindAllStringSubmatch(info, -1) {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			f.t.Fatal(err)
		}
		c[m[1]] = n
	}
	return c
}

// since are the counts since earlier ones.
func (c counts) since(earlier counts) counts {
	d := counts{}
	for name, n := range c {
		if n > earlier[name] {
			d[name] = n - earlier[name]
		}
	}
	return d
}

func (c counts) total() (sum int64) {
	for _, n := range c {
		sum += n
	}
	return sum
}

// per lists the counts for one of n, the most frequent first.
func (c counts) per(n int) string {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int { return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a, b)) })
	var list []string
	for _, name := range names {
		if each := float64(c[name]) / float64(max(1, n)); each >= 0.005 {
			list = append(list, fmt.Sprintf("%s %.2f", name, each))
		}
	}
	return strings.Join(list, ", ")
}

// streamed is how many entries the change streams have, all together and the
// longest.
func (f *fleet) streamed() (all, longest int64) {
	f.t.Helper()
	for p := range partitions {
		n, err := f.client.XLen(context.Background(), f.space.Stream(p)).Result()
		if err != nil {
			f.t.Fatal(err)
		}
		all, longest = all+n, max(longest, n)
	}
	return all, longest
}
