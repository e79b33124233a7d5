package freqcap

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
)

// rolling is the kind of a rolling window in a key.
const rolling = "r"

// counter is where a cap counts.
type counter struct {
	key    string
	window int64 // milliseconds
}

// counterOf finds the counter of a user's cap. Two caps of one kind, set of
// fields and window have the same one, in whichever order they name the fields.
func counterOf(space *keyspace.Space, user sendgate.UserID, c sendgate.BoundCap) (counter, error) {
	switch {
	case c.Kind != sendgate.CapRolling:
		return counter{}, fmt.Errorf("a cap of kind %d cannot be counted", c.Kind)
	case c.Window < time.Millisecond:
		return counter{}, fmt.Errorf("a window of %s is too short to be counted", c.Window)
	case len(c.Values) != len(c.By):
		return counter{}, fmt.Errorf("a cap by %d fields came with %d values", len(c.By), len(c.Values))
	}
	window := c.Window.Milliseconds()
	fields, values := inOrder(c.By, c.Values)
	return counter{key: space.Cap(user, rolling, window, fields, values), window: window}, nil
}

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
