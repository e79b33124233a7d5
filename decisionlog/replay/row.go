package replay

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog"
)

// Row is what is reported of one cap: of all its counters together.
type Row struct {
	Kind    string
	Subject sendgate.Field // empty: the user
	By      []sendgate.Field
	Span    string // `24h`, or `day` of a calendar
	Buckets int

	Decisions int64 // that the cap has judged, and other caps may have denied
	Allows    int64
	Denials   int64 // by this cap
	Slots     int64 // that were taken; an allow that had its slot takes none
	Returned  int64 // slots that were given back
	Over      int64 // allows that took a slot beyond what was open to them
	Under     int64 // denials although there was room
	Unknown   int64 // the same, before the logs go back for a whole window
	Overshoot int64 // deliveries that were reported late, or without a slot, when the cap was full
	Uncapped  int64 // allows that the cap could not judge
	// Worst is the greatest count in any window, as far as it is from the limit
	// that was in force, which is WorstLimit.
	Worst, WorstLimit int
}

// Name is the cap's as people look for it in the catalog, such as
// `category,channel/24h`, or `buckets household_id:all/7d`.
func (r *Row) Name() string {
	fields := make([]string, len(r.By))
	for i, f := range r.By {
		fields[i] = string(f)
	}
	name := cmp.Or(strings.Join(fields, ","), "all")
	if r.Subject != "" {
		name = string(r.Subject) + ":" + name
	}
	name += "/" + r.Span
	if r.Buckets > 0 {
		name += "/" + strconv.Itoa(r.Buckets)
	}
	if r.Kind != sendgate.CapRolling.String() {
		name = r.Kind + " " + name
	}
	return name
}

func (r *Row) worst(count, limit int) {
	if r.Worst == 0 || count-limit > r.Worst-r.WorstLimit || count-limit == r.Worst-r.WorstLimit && count > r.Worst {
		r.Worst, r.WorstLimit = count, limit
	}
}

// Rows are all caps that the logs tell of, by name.
func (r *Replay) Rows() []*Row {
	return slices.SortedFunc(maps.Values(r.rows), func(a, b *Row) int { return strings.Compare(a.Name(), b.Name()) })
}

func (r *Replay) rowOf(c *decisionlog.Cap) (*Row, error) {
	key := rowKey(c)
	if row := r.rows[key]; row != nil {
		return row, nil
	}
	own, err := c.Cap()
	if err != nil {
		return nil, err
	}
	row := &Row{Kind: c.Kind, Subject: c.Subject, By: slices.Sorted(slices.Values(c.By)), Span: own.Span(), Buckets: c.Buckets}
	r.rows[key] = row
	return row, nil
}

// rowKey is the same for caps of one kind, subject, set of fields and window.
func rowKey(c *decisionlog.Cap) string {
	fields := make([]string, len(c.By))
	for i, f := range c.By {
		fields[i] = string(f)
	}
	slices.Sort(fields)
	return strings.Join([]string{
		c.Kind, string(c.Subject), strings.Join(fields, ","), c.Window.String() + c.Period, strconv.Itoa(c.Buckets),
	}, "\x1f")
}

// valuesOf are the values that a cap was keyed by, for people.
func valuesOf(c *decisionlog.Cap) string {
	var b strings.Builder
	if c.Subject != "" {
		b.WriteString(" " + string(c.Subject) + "=" + c.SubjectID)
	}
	for i, f := range c.By {
		b.WriteString(" " + string(f) + "=" + c.Values[i])
	}
	return b.String()
}

func timeOf(millis int64) time.Time { return time.UnixMilli(millis).UTC() }
