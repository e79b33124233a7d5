package chaos_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// row is what one fault came to.
type row struct {
	scene, fault string
	stated       string // why more than the limit of a cap may be charged; empty: it may not

	mu                                  sync.Mutex
	changes, tried                      int // acknowledged; without an answer or refused for now
	checks, unanswered                  int
	lost, late                          int // answers and records that were never right, or not in time
	worst                               time.Duration
	wrongSends, wrongStops, disobedient int            // checks
	degraded, degradedSends             int            // the latter are allowances of somebody who is out
	charged, allowance                  int            // under a person's cap, the most; and what it may be
	charges                             map[string]int // by person
	faults                              []string
}

const shownFaults = 12

// blame notes something that breaks the promise, in the row's counter for it.
func (r *row) blame(counter *int, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter++
	if len(r.faults) < shownFaults {
		r.faults = append(r.faults, fmt.Sprintf(format, args...))
	}
}

func (r *row) count(counter *int, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter += n
}

// sawEffect notes how long something took to be in force, at the least.
func (r *row) sawEffect(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.worst = max(r.worst, after)
}

// overshoot is how many were charged beyond the limit of their caps, of all
// people together.
func (r *row) overshoot() (n int) {
	for _, charged := range r.charges {
		n += max(0, charged-limit)
	}
	return n
}

// table writes the table that a run ends with.
func table(t *testing.T, rows []*row) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rig\tfault\tacknowledged\tno answer\tlost\tlate\tworst time to effect\twrong sends\twrong suppressions\tchecks\tdegraded\tsent degraded\tmost charged under a cap\tovershoot\t  stated allowance")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d of %d\t%d\t  %s\n", r.scene, r.fault, r.changes, r.tried, r.lost, r.late,
			r.worst.Round(time.Millisecond), r.wrongSends+r.disobedient, r.wrongStops, r.checks, r.degraded, r.degradedSends, r.charged, r.allowance,
			r.overshoot(), r.stated)
	}
	_ = w.Flush()
	t.Logf("a limit of %s, and caps of %d:\n%s", promise, limit, b.String())
}
