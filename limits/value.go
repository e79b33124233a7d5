package limits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sendgate/sendgate"
)

// MaxLimits is how many limits one value may have.
const MaxLimits = 8

// Value is one value of some of a check's fields: one campaign, or one campaign
// on one channel.
type Value struct {
	By     []sendgate.Field // in any order; as they are stored and listed, by name
	Values []string         // of By, in its order
}

// Entry is a value and its limits.
type Entry struct {
	Value
	Limits []sendgate.ValueLimit // by rising window; shared and never changed
}

// sorted is the value with its fields sorted by name, or what is wrong with it.
func (v Value) sorted() (Value, sendgate.Errors) {
	errs := fieldFaults(v.By, func(i int) string { return fmt.Sprintf("by[%d]", i) })
	if len(v.By) == 0 {
		errs.Add(sendgate.Errorf(sendgate.CodeMissingField, "by", "at least one field is required"))
	} else if len(v.Values) != len(v.By) {
		errs.Add(sendgate.Errorf(sendgate.CodeInvalidField, "values", "has to have one value for each field of by, which has %d", len(v.By)))
	}
	for i, value := range v.Values {
		if sendgate.UserID(value).Validate("") != nil { // the form is that of every id
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidField, fmt.Sprintf("values[%d]", i),
				"a value is 1 to %d bytes of UTF-8 without control characters", sendgate.MaxIDBytes))
		}
	}
	if len(errs) > 0 {
		return Value{}, errs
	}
	s := Value{By: slices.Sorted(slices.Values(v.By)), Values: make([]string, len(v.By))}
	for i, f := range s.By {
		s.Values[i] = v.Values[slices.Index(v.By, f)]
	}
	return s, nil
}

// fieldFaults says what is wrong with a list of fields, each named by its place.
func fieldFaults(by []sendgate.Field, name func(int) string) (errs sendgate.Errors) {
	for i, f := range by {
		if !f.Known() {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidField, name(i), "a check has no field %q", sendgate.Clip(string(f))))
		} else if slices.Contains(by[:i], f) {
			errs.Add(sendgate.Errorf(sendgate.CodeDuplicateEntry, name(i), "%q is given twice", f))
		}
	}
	return errs
}

// sortedLimits are the limits by rising window, or what is wrong with them.
func sortedLimits(given []sendgate.ValueLimit) ([]sendgate.ValueLimit, sendgate.Errors) {
	var errs sendgate.Errors
	switch {
	case len(given) == 0:
		errs.Add(sendgate.Errorf(sendgate.CodeMissingField, "limits", "at least one limit is required"))
	case len(given) > MaxLimits:
		return nil, sendgate.Errors{sendgate.Errorf(sendgate.CodeInvalidCap, "limits", "a value has at most %d limits", MaxLimits)}
	}
	least, most := sendgate.Duration(sendgate.MinCapWindow), sendgate.Duration(sendgate.MaxCapWindow)
	for i, l := range given {
		window := fmt.Sprintf("limits[%d].window", i)
		switch {
		case l.Window < least || l.Window > most || time.Duration(l.Window)%time.Second != 0:
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidCap, window, "must be from %s to %s", least, most))
		case slices.ContainsFunc(given[:i], func(o sendgate.ValueLimit) bool { return o.Window == l.Window }):
			errs.Add(sendgate.Errorf(sendgate.CodeDuplicateEntry, window, "a window of %s is given twice", l.Window))
		}
		if l.Limit < 0 || l.Limit > sendgate.MaxCapLimit {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidCap, fmt.Sprintf("limits[%d].limit", i), "must be from 0 to %d", sendgate.MaxCapLimit))
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return slices.SortedFunc(slices.Values(given), func(a, b sendgate.ValueLimit) int { return cmp.Compare(a.Window, b.Window) }), nil
}

// cappedBy refuses fields that no cap of a catalog is keyed by: a limit of theirs
// would do nothing. by is sorted.
func cappedBy(c *sendgate.Catalog, by []sendgate.Field) *sendgate.Error {
	for name := range c.Spec().Categories {
		category, _ := c.Category(name)
		for _, own := range category.Caps {
			if own.Subject == "" && slices.Equal(slices.Sorted(slices.Values(own.By)), by) {
				return nil
			}
		}
	}
	return sendgate.Errorf(sendgate.CodeInvalidCap, "by",
		"no cap of the catalog counts a user's notifications by %s: give it one, which is the limit of all other values", listed(by))
}

// listed names fields for a person.
func listed(by []sendgate.Field) string {
	names := make([]string, len(by))
	for i, f := range by {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}
