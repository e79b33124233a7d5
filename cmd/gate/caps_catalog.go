package main

import (
	"maps"
	"slices"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
)

// catalogLimit is a limit that the catalog has for a counter.
type catalogLimit struct {
	Limit    int    `json:"limit"`
	ResetsAt string `json:"resets_at,omitzero"` // as of a charge
}

// catalogLimits are the limits that the catalog has for a counter. There are none
// where it was last charged under one of them: a denied check writes nothing, so
// that a record knows of a lowered limit only once something is charged under it.
// Categories that share a counter may have several.
func catalogLimits(catalog *sendgate.Catalog, subject sendgate.Field, c *freqcap.Count) (all []catalogLimit) {
	if catalog == nil {
		return nil
	}
	limits := map[int]bool{}
	for name := range catalog.Spec().Categories {
		category, _ := catalog.Category(name)
		for _, own := range category.Caps {
			if countsIn(&own, name, subject, c) {
				limits[own.Limit] = true
			}
		}
	}
	if limits[c.Limit] {
		return nil
	}
	for _, limit := range slices.Sorted(maps.Keys(limits)) {
		all = append(all, catalogLimit{limit, instant(c.ResetsAt(limit))})
	}
	return all
}

// countsIn tells whether a cap of a category counts in a counter.
func countsIn(own *sendgate.Cap, category string, subject sendgate.Field, c *freqcap.Count) bool {
	of := slices.Index(c.By, "category")
	return own.Kind == c.Kind && own.Span() == c.Span && own.Buckets == c.Parts && own.Subject == subject &&
		slices.Equal(slices.Sorted(slices.Values(own.By)), slices.Sorted(slices.Values(c.By))) &&
		(of < 0 || c.Values[of] == category)
}

// room says when a counter of which so many slots are taken has room under the limit.
func (l catalogLimit) room(used int) string {
	switch {
	case l.Limit == 0:
		return "never"
	case used < l.Limit:
		return "there is room"
	default:
		return "room again at " + l.ResetsAt
	}
}
