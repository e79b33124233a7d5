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
	"github.com/sendgate/sendgate/catalogfile"
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
	if subject != "" && !subject.IsSubject() {
		return fmt.Errorf("--subject: %q is no id of a check whose notifications can be counted, such as household_id", sendgate.Clip(c.Subject))
	}
	if err := sendgate.UserID(c.User).Validate("<user>"); err != nil {
		return err
	}
	caps, err := c.caps(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, caps.Close()) }()
	u, err := caps.Usage(ctx, subject, c.User)
	if err != nil {
		return fmt.Errorf("%s: %w", caps.where, err)
	}
	catalog, err := catalogfile.Load(caps.catalog)
	if err != nil {
		fmt.Fprintf(s.Err, "limits are not compared with the catalog's: %v\n", err)
	}
	shown := shownUsage(c.User, subject, &u, catalog)
	shown.Key, shown.Redis, shown.Partitions = caps.space.Caps(subject, c.User), caps.where, caps.space.Partitions()
	if c.JSON {
		e := json.NewEncoder(s.Out)
		e.SetEscapeHTML(false)
		return e.Encode(shown)
	}
	return shown.print(s.Out)
}

// usage is what a person is shown of a subject's record.
type usage struct {
	User      string         `json:"user,omitzero"`
	Subject   sendgate.Field `json:"subject,omitzero"`
	SubjectID string         `json:"subject_id,omitzero"`
	At        string         `json:"at"` // by the clock of the caps
	Bytes     int            `json:"bytes"`
	Holds     int            `json:"holds"`
	Caps      []charge       `json:"caps"`
	Links     []string       `json:"links"` // other subjects that hold slots for the user's notifications

	// Where the record was looked for.
	Key        string `json:"key"`
	Redis      string `json:"redis"`
	Partitions int    `json:"partitions"`
}

// charge is one counter.
type charge struct {
	Kind     string            `json:"kind"`
	By       []sendgate.Field  `json:"by"`
	Values   map[string]string `json:"values"`
	Window   string            `json:"window"`
	Buckets  int               `json:"buckets,omitzero"`
	Limit    int               `json:"limit"` // that it was last charged under
	Used     int               `json:"used"`
	Oldest   string            `json:"oldest,omitzero"` // slot that is known by its time
	Newest   string            `json:"newest,omitzero"`
	ResetsAt string            `json:"resets_at,omitzero"` // when the next slot comes free; where there is no room, when there is again
	Catalog  []catalogLimit    `json:"catalog,omitempty"`  // what the catalog's limits are, where that is none of them
}

func shownUsage(id string, subject sendgate.Field, u *freqcap.Usage, catalog *sendgate.Catalog) usage {
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
			Kind: c.Kind.String(), By: append([]sendgate.Field{}, c.By...), Values: map[string]string{}, Window: c.Span, Buckets: c.Parts,
			Limit: c.Limit, Used: c.Used, ResetsAt: instant(c.ResetsAt(c.Limit)), Catalog: catalogLimits(catalog, subject, c),
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
	for _, c := range u.Caps {
		for _, l := range c.Catalog {
			fmt.Fprintf(w, "%s, %s: was last charged under a limit of %d, and the catalog has %d: %s\n", c.keyedBy(), c.Window, c.Limit, l.Limit, l.room(c.Used))
		}
	}
	if len(u.Links) > 0 {
		fmt.Fprintf(w, "also charged: %s\n", strings.Join(u.Links, ", "))
	}
	fmt.Fprintf(w, "%d bytes at %s, %d holds wait for a report of delivery\n", u.Bytes, u.At, u.Holds)
	return u.hint(w)
}

// hint says where was looked, if nothing was found there.
func (u *usage) hint(w io.Writer) (err error) {
	switch {
	case u.Bytes == 0:
		_, err = fmt.Fprintf(w, "nothing was found: there is no key %q at %s, where it would be of %d partitions.\n"+
			"A record goes when nothing in it counts any more. If one should be there, see that the id is\n"+
			"spelled as in the checks, and that namespace, --partitions and Redis are those of the gates.\n", u.Key, u.Redis, u.Partitions)
	case len(u.Caps)+len(u.Links) == 0:
		_, err = fmt.Fprintln(w, "nothing in it counts any more")
	}
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
