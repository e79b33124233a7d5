package freqcap

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sendgate/sendgate"
)

// counter is where a cap counts within its subject's record: see record.lua.
type counter struct {
	name  string // of its section
	span  int64  // for how many milliseconds an entry is kept
	limit int
	tally string // what a section needs that has one
}

// The kinds of sections.
const (
	kindRolling  = 'r'
	kindBuckets  = 'b'
	kindCalendar = 'c'
	kindLink     = '>'
)

// separator stands before each field in a section's name, and between the name
// of an attribute and its value. No id may contain a control character.
const (
	separator     = "\x1f"
	attributeMark = "\x1e"
)

// codes are the letters of the fields in a section's name.
var codes = map[sendgate.Field]string{
	"category": "g", "topic": "t", "channel": "c", "campaign_id": "k", "sender_id": "s",
	"creative_id": "v", "household_id": "h", "device_id": "d",
}

const (
	attributePrefix = "attributes."
	attributeCode   = "a"
)

// writeField writes a field and its value as they stand in a name.
func writeField(b *strings.Builder, f sendgate.Field, value string) {
	if name, ok := strings.CutPrefix(string(f), attributePrefix); ok {
		b.WriteString(attributeCode + name + attributeMark + value)
		return
	}
	b.WriteString(codes[f] + value)
}

// readField is the reverse of writeField.
func readField(s string) (f sendgate.Field, value string, ok bool) {
	if s == "" {
		return "", "", false
	}
	if s[:1] == attributeCode {
		name, value, ok := strings.Cut(s[1:], attributeMark)
		return sendgate.Field(attributePrefix + name), value, ok
	}
	for f, code := range codes {
		if s[:1] == code {
			return f, s[1:], true
		}
	}
	return "", "", false
}

// counterOf finds the counter of a cap as of now. Two caps of one kind, set of
// fields and window have the same one, in whichever order they name the fields.
func counterOf(c *sendgate.BoundCap, now time.Time) (counter, error) {
	k := counter{span: c.Window.Milliseconds(), limit: c.Limit}
	var b strings.Builder
	switch c.Kind {
	case sendgate.CapRolling:
		b.WriteByte(kindRolling)
		b.WriteString(sendgate.Duration(c.Window).String())
	case sendgate.CapBuckets:
		b.WriteByte(kindBuckets)
		b.WriteString(sendgate.Duration(c.Window).String() + "/" + strconv.Itoa(c.Buckets))
		if c.Buckets < 1 || c.Buckets > sendgate.MaxBuckets || k.span%int64(c.Buckets) != 0 {
			return k, fmt.Errorf("a window of %s cannot be cut into %d", c.Window, c.Buckets)
		}
		k.tally = strconv.FormatInt(k.span/int64(c.Buckets), 10) + " " + strconv.Itoa(c.Buckets)
		k.span = c.Remember.Milliseconds()
	case sendgate.CapCalendar:
		b.WriteByte(kindCalendar)
		b.WriteString(c.Period.String())
		spans := c.Zone.Spans(c.Period, now)
		for _, s := range spans {
			k.tally += strconv.Itoa(s.Label) + " " + strconv.FormatInt(s.Start.UnixMilli(), 10) + " "
		}
		k.tally += strconv.FormatInt(spans[len(spans)-1].End.UnixMilli(), 10)
		k.span = c.Remember.Milliseconds()
	default:
		return k, fmt.Errorf("a cap of kind %d cannot be counted", c.Kind)
	}
	switch {
	case k.span < 1:
		return k, fmt.Errorf("a window of %s is too short to be counted", c.Window)
	case len(c.Values) != len(c.By):
		return k, fmt.Errorf("a cap by %d fields came with %d values", len(c.By), len(c.Values))
	}
	fields, values := inOrder(c.By, c.Values)
	for i, f := range fields {
		b.WriteString(separator)
		writeField(&b, f, values[i])
	}
	k.name = b.String()
	return k, nil
}

// linkTo is the section of a user's record that says that another subject has
// charged something as well.
func linkTo(subject sendgate.Field, id string, span int64) counter {
	var b strings.Builder
	b.WriteByte(kindLink)
	writeField(&b, subject, id)
	return counter{name: b.String(), span: span, limit: noLimit}
}

// noLimit is more than any record holds.
const noLimit = 65535

// inOrder sorts fields by name, each with its value, and leaves what it was
// given alone.
func inOrder(by []sendgate.Field, values []string) ([]sendgate.Field, []string) {
	if slices.IsSorted(by) {
		return by, values
	}
	type pair struct {
		field sendgate.Field
		value string
	}
	pairs := make([]pair, len(by))
	for i := range by {
		pairs[i] = pair{by[i], values[i]}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(string(a.field), string(b.field)) })
	fields, sorted := make([]sendgate.Field, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		fields[i], sorted[i] = p.field, p.value
	}
	return fields, sorted
}
