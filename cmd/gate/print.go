package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// decision is a gate's answer, as far as a person is shown it.
type decision struct {
	NotificationID string     `json:"notification_id"`
	Verdict        string     `json:"verdict"`
	Reason         string     `json:"reason"`
	Step           string     `json:"step"`
	Category       string     `json:"category"`
	Exact          bool       `json:"exact"`
	Degraded       bool       `json:"degraded"`
	DeliverAt      string     `json:"deliver_at"`
	RetryAt        string     `json:"retry_at"`
	Caps           []capState `json:"caps"`
	Trace          []struct {
		Step    string `json:"step"`
		Finding string `json:"finding"`
		TookUS  int64  `json:"took_us"`
	} `json:"trace"`
}

// capState is how one cap stood.
type capState struct {
	Kind     string   `json:"kind"`    // empty: rolling
	Subject  string   `json:"subject"` // empty: the user
	By       []string `json:"by"`
	Window   string   `json:"window"`
	Limit    int      `json:"limit"`
	Kept     int      `json:"kept"`
	KeptFor  string   `json:"kept_for"`
	Used     int      `json:"used"`
	ResetsAt string   `json:"resets_at"`
}

// line says it in one line. What is as it is by default goes without saying.
func (c *capState) line(verdict string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d used in ", c.Used, c.Limit)
	switch c.Kind {
	case "calendar":
		fmt.Fprintf(&b, "the calendar's %s", c.Window)
	case "":
		b.WriteString(c.Window)
	default:
		fmt.Fprintf(&b, "%s (%s)", c.Window, c.Kind)
	}
	fmt.Fprintf(&b, " by %s", cmp.Or(strings.Join(c.By, ", "), "everything"))
	if c.Subject != "" {
		fmt.Fprintf(&b, ", counted for the %s", c.Subject)
	}
	if c.Kept > 0 {
		fmt.Fprintf(&b, ", the last %d kept for priority %s", c.Kept, c.KeptFor)
	}
	switch {
	case c.ResetsAt == "":
	case c.Used >= c.Limit && verdict != "allow":
		fmt.Fprintf(&b, "; room again at %s", c.ResetsAt)
	default:
		fmt.Fprintf(&b, "; the next slot comes free at %s", c.ResetsAt)
	}
	return b.String()
}

// printDecision shows a decision to a person.
func printDecision(w io.Writer, answer []byte) error {
	var d decision
	if err := json.Unmarshal(answer, &d); err != nil {
		return fmt.Errorf("the gate's answer is not understood: %w", err)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\t%s, decided by step %s\n", strings.ToUpper(d.Verdict), d.Reason, d.Step)
	fmt.Fprintf(t, "notification\t%s\n", d.NotificationID)
	fmt.Fprintf(t, "category\t%s\n", d.Category)
	switch {
	case d.DeliverAt != "":
		fmt.Fprintf(t, "deliver at\t%s\n", d.DeliverAt)
	case d.Verdict == "defer":
		fmt.Fprintf(t, "deliver at\tno time is known: waiting alone will not let it through\n")
	}
	if d.RetryAt != "" {
		fmt.Fprintf(t, "retry at\t%s\n", d.RetryAt)
	}
	if !d.Exact {
		fmt.Fprintf(t, "not exact\tonly the filter said so\n")
	}
	if d.Degraded {
		fmt.Fprintf(t, "degraded\tsomething that had to be known could not be read\n")
	}
	for i := range d.Caps {
		fmt.Fprintf(t, "cap\t%s\n", d.Caps[i].line(d.Verdict))
	}
	for i, step := range d.Trace {
		if i == 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "%s\t%s (%d µs)\n", step.Step, step.Finding, step.TookUS)
	}
	return t.Flush()
}
