package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/sendgate/sendgate/decisionlog"
	"github.com/sendgate/sendgate/decisionlog/replay"
	"github.com/sendgate/sendgate/internal/cli"
)

// reading is what commands have in common that read decision logs.
type reading struct {
	Logs    []string `arg:"" name:"log" type:"existingfile" help:"Decision logs, in any order: of several gates, and what was rotated away (.gz is unpacked)."`
	SkipBad bool     `help:"Read over lines that are no entries."`
}

// replay counts what the logs say.
func (c reading) replay(ctx context.Context, w io.Writer, o replay.Options) (*replay.Replay, error) {
	r := replay.New(o)
	stats, err := decisionlog.Read(ctx, c.Logs, decisionlog.ReadOptions{SkipBad: c.SkipBad}, r.Add)
	var bad *decisionlog.LineError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("%w (--skip-bad reads over such lines)", err)
	}
	if err == nil {
		err = r.Finish()
	}
	if err != nil {
		return nil, err
	}
	from, to := r.Span()
	fmt.Fprintf(w, "%d entries", stats.Entries)
	if stats.Entries > 0 && !from.IsZero() {
		fmt.Fprintf(w, ", from %s to %s", instant(from), instant(to))
	}
	fmt.Fprintln(w)
	if stats.Entries == 0 {
		fmt.Fprintln(w, "nothing was found: the logs tell of no check that a frequency cap has judged")
	}
	for _, f := range []struct {
		what   string
		faults decisionlog.Faults
	}{{"lines are torn, and were left out", stats.Torn}, {"lines are no entries, and were skipped", stats.Bad}} {
		if f.faults.Count == 0 {
			continue
		}
		fmt.Fprintf(w, "%d %s\n", f.faults.Count, f.what)
		for _, err := range f.faults.Named {
			fmt.Fprintf(w, "  %v\n", err)
		}
	}
	if stats.Lost > 0 {
		fmt.Fprintf(w, "%d entries are missing: the gates could not write them. What they charged is not counted here\n", stats.Lost)
	}
	if r.Late() > 0 {
		fmt.Fprintf(w, "%d verdicts stand out of order by more than %v, and were not put into their place\n", r.Late(), decisionlog.Slack)
	}
	return r, nil
}

type replayCmd struct {
	reading
	Complete bool `help:"Nothing was charged before the logs begin: judge denials from the beginning on."`
	Verbose  bool `short:"v" help:"Name the notifications concerned."`
}

var errOver = errors.New("there was over-delivery")

func (c replayCmd) Run(ctx context.Context, s cli.Streams) error {
	o := replay.Options{Complete: c.Complete}
	if c.Verbose {
		o.Found = func(f replay.Finding) { printFinding(s.Out, &f) }
	}
	r, err := c.replay(ctx, s.Out, o)
	if err != nil {
		return err
	}
	over := int64(0)
	t := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CAP\tDECISIONS\tALLOWS\tDENIALS\tSLOTS\tRETURNED\tOVER\tUNDER\tUNKNOWN\tOVERSHOOT\tUNCAPPED\tWORST")
	for _, row := range r.Rows() {
		over += row.Over
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d of %d\n", row.Name(), row.Decisions, row.Allows, row.Denials,
			row.Slots, row.Returned, row.Over, row.Under, row.Unknown, row.Overshoot, row.Uncapped, row.Worst, row.WorstLimit)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if over > 0 {
		return errOver
	}
	return nil
}

func printFinding(w io.Writer, f *replay.Finding) {
	what := "under-delivery: denied"
	if f.Over {
		what = "over-delivery: allowed"
	}
	fmt.Fprintf(w, "%s %s with %d of %d taken: user %q, notification %q, channel %s, cap %s\n",
		instant(f.At), what, f.Count, f.Room, f.User, f.NotificationID, f.Channel, f.Cap)
}
