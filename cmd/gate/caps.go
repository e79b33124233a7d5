package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/cli"
)

type capsCmd struct {
	counting
	User    string `arg:"" help:"The user's id; with --subject, the subject's."`
	Subject string `placeholder:"FIELD" help:"Show another subject than a user, such as household_id."`
	JSON    bool   `help:"Print JSON."`
}

func (c capsCmd) Run(ctx context.Context, s cli.Streams) (err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	subject := sendgate.Field(c.Subject)
	if subject != "" && !subject.Known() {
		return fmt.Errorf("--subject: %q is no field of a check, such as household_id", sendgate.Clip(c.Subject))
	}
	if err := sendgate.UserID(c.User).Validate("user"); err != nil {
		return err
	}
	caps, closes, err := c.caps(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closes.Close()) }()
	usage, err := caps.Usage(ctx, subject, c.User)
	if err != nil {
		return err
	}
	shown := shownUsage(c.User, c.Subject, &usage)
	if c.JSON {
		e := json.NewEncoder(s.Out)
		e.SetEscapeHTML(false)
		return e.Encode(shown)
	}
	return shown.print(s.Out)
}

// usage is what a person is shown of a subject's record.
type usage struct {
	User      string   `json:"user,omitempty"`
	Subject   string   `json:"subject,omitempty"`
	SubjectID string   `json:"subject_id,omitempty"`
	At        string   `json:"at"` // by the clock of the caps
	Bytes     int      `json:"bytes"`
	Holds     int      `json:"holds"`
	Caps      []charge `json:"caps"`
	Links     []string `json:"links"` // other subjects that hold slots for the user's notifications
}

// charge is one counter.
type charge struct {
	Kind     string            `json:"kind"`
	By       []sendgate.Field  `json:"by"`
	Values   map[string]string `json:"values"`
	Window   string            `json:"window"`
	Limit    int               `json:"limit"` // that it was last judged by
	Used     int               `json:"used"`
	Oldest   string            `json:"oldest,omitempty"` // slot that is known by its time
	Newest   string            `json:"newest,omitempty"`
	ResetsAt string            `json:"resets_at,omitempty"` // when the next slot comes free
}

func shownUsage(id, subject string, u *freqcap.Usage) usage {
	shown := usage{At: instant(u.At), Bytes: u.Bytes, Holds: u.Holds, Caps: []charge{}, Links: []string{}}
	if subject == "" {
		shown.User = id
	} else {
		shown.Subject, shown.SubjectID = subject, id
	}
	for i := range u.Counts {
		c := &u.Counts[i]
		if c.Subject != "" {
			shown.Links = append(shown.Links, string(c.Subject)+"="+c.SubjectID)
			continue
		}
		own := charge{
			Kind: c.Kind.String(), By: append([]sendgate.Field{}, c.By...), Values: map[string]string{}, Window: c.Span,
			Limit: c.Limit, Used: c.Used, ResetsAt: instant(c.ResetsAt),
		}
		for i, f := range c.By {
			own.Values[string(f)] = c.Values[i]
		}
		if n := len(c.Slots); n > 0 {
			own.Oldest, own.Newest = instant(c.Slots[0]), instant(c.Slots[n-1])
		}
		shown.Caps = append(shown.Caps, own)
	}
	return shown
}

// instant writes an instant as the interface does; none is empty.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func (u *usage) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(u.Caps) > 0 {
		fmt.Fprintln(t, "KIND\tBY\tWINDOW\tUSED\tOLDEST\tNEWEST\tRESETS")
	}
	for _, c := range u.Caps {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\n", c.Kind, c.keyedBy(), c.Window, c.Used, c.Limit,
			cmp.Or(c.Oldest, "-"), cmp.Or(c.Newest, "-"), cmp.Or(c.ResetsAt, "-"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(u.Links) > 0 {
		fmt.Fprintf(w, "also charged: %s\n", strings.Join(u.Links, ", "))
	}
	_, err := fmt.Fprintf(w, "%d bytes at %s, %d holds wait for a report of delivery\n", u.Bytes, u.At, u.Holds)
	return err
}

// keyedBy is what a counter is keyed by, as `category=marketing`.
func (c *charge) keyedBy() string {
	parts := make([]string, len(c.By))
	for i, f := range c.By {
		parts[i] = string(f) + "=" + c.Values[string(f)]
	}
	return cmp.Or(strings.Join(parts, ", "), "everything")
}
