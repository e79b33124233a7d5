package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// decision is a gate's answer, as far as a person is shown it.
type decision struct {
	NotificationID string `json:"notification_id"`
	Verdict        string `json:"verdict"`
	Reason         string `json:"reason"`
	Step           string `json:"step"`
	Category       string `json:"category"`
	Exact          bool   `json:"exact"`
	Degraded       bool   `json:"degraded"`
	DeliverAt      string `json:"deliver_at"`
	RetryAt        string `json:"retry_at"`
	Caps           []struct {
		By       []string `json:"by"`
		Window   string   `json:"window"`
		Limit    int      `json:"limit"`
		Used     int      `json:"used"`
		ResetsAt string   `json:"resets_at"`
	} `json:"caps"`
	Trace []struct {
		Step    string `json:"step"`
		Finding string `json:"finding"`
		TookUS  int64  `json:"took_us"`
	} `json:"trace"`
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
	if d.DeliverAt != "" {
		fmt.Fprintf(t, "deliver at\t%s\n", d.DeliverAt)
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
	for _, c := range d.Caps {
		by := strings.Join(c.By, ", ")
		if by == "" {
			by = "everything"
		}
		fmt.Fprintf(t, "cap\t%d of %d used in %s by %s", c.Used, c.Limit, c.Window, by)
		if c.ResetsAt != "" {
			fmt.Fprintf(t, "; the next slot comes free at %s", c.ResetsAt)
		}
		fmt.Fprintln(t)
	}
	for i, step := range d.Trace {
		if i == 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "%s\t%s (%d µs)\n", step.Step, step.Finding, step.TookUS)
	}
	return t.Flush()
}
