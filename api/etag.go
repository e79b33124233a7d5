package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// etagOf is the entity tag of a revision.
func etagOf(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// precondition is what If-Match asks for.
type precondition struct {
	any       bool    // there is no such header, or it is *
	revisions []int64 // otherwise: the ones that may be edited
}

// allows tells whether a revision may be edited.
func (p *precondition) allows(revision int64) bool {
	return p.any || slices.Contains(p.revisions, revision)
}

// parseIfMatch reads the header as RFC 9110 section 13.1.1 has it: * or a list
// of entity tags. A weak tag, and a strong one that no revision has, matches
// nothing. Every user has a document, so that * always matches.
func parseIfMatch(h http.Header) (*precondition, error) {
	given := h.Values("If-Match")
	if len(given) == 0 {
		return &precondition{any: true}, nil
	}
	list := strings.Join(given, ",")
	if strings.Trim(list, " \t") == "*" {
		return &precondition{any: true}, nil
	}
	p, tags := &precondition{}, 0
	for rest := list; ; {
		rest = strings.TrimLeft(rest, " \t,")
		if rest == "" {
			break
		}
		tag, weak, after, ok := cutTag(rest)
		if !ok {
			return nil, malformedHeader("If-Match", "has to be * or a list of entity tags, such as %s", etagOf(7))
		}
		if revision, err := strconv.ParseInt(tag, 10, 64); err == nil && !weak && strconv.FormatInt(revision, 10) == tag {
			p.revisions = append(p.revisions, revision)
		}
		rest, tags = after, tags+1
	}
	if tags == 0 {
		return nil, malformedHeader("If-Match", "is empty")
	}
	return p, nil
}

// cutTag takes an entity tag off a list, up to and without the next comma.
func cutTag(s string) (tag string, weak bool, rest string, ok bool) {
	s, weak = strings.CutPrefix(s, "W/")
	s, ok = strings.CutPrefix(s, `"`)
	if !ok {
		return "", false, "", false
	}
	tag, rest, ok = strings.Cut(s, `"`)
	if !ok || strings.ContainsFunc(tag, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", false, "", false
	}
	rest = strings.TrimLeft(rest, " \t")
	return tag, weak, rest, rest == "" || rest[0] == ','
}
