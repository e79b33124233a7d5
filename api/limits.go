package api

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/limits"
)

// limitsBody is a value and the limits that it is to have.
type limitsBody struct {
	By     member[[]string]    `json:"by"`
	Values member[[]string]    `json:"values"`
	Limits member[[]limitEdit] `json:"limits"`
}

type limitEdit struct {
	Window member[string] `json:"window"`
	Limit  member[number] `json:"limit"`
}

// parseLimits reads a value and its limits; none takes them away.
func parseLimits(data []byte) (limits.Entry, error) {
	var b limitsBody
	if err := decode(data, &b); err != nil {
		return limits.Entry{}, err
	}
	var errs sendgate.Errors
	e := limits.Entry{Value: limits.Value{By: fieldsOf(b.By.require("by", &errs)), Values: b.Values.require("values", &errs)}}
	for i, l := range b.Limits.require("limits", &errs) {
		e.Limits = append(e.Limits, l.edit(fmt.Sprintf("limits[%d]", i), &errs))
	}
	return e, errs.Err()
}

func (l *limitEdit) edit(path string, errs *sendgate.Errors) (v sendgate.ValueLimit) {
	if window := l.Window.require(path+".window", errs); l.Window.given && !l.Window.null {
		var err error
		if v.Window, err = sendgate.ParseDuration(window); err != nil {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidCap, path+".window", "%v", err))
		}
	}
	if n := l.Limit.require(path+".limit", errs); l.Limit.given && !l.Limit.null {
		var err error
		if v.Limit, err = strconv.Atoi(string(n)); err != nil {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidCap, path+".limit", "has to be a whole number"))
		}
	}
	return v
}

func fieldsOf(names []string) []sendgate.Field {
	fields := make([]sendgate.Field, len(names))
	for i, name := range names {
		fields[i] = sendgate.Field(name)
	}
	return fields
}

// valueDoc is a value and its limits as callers see them.
type valueDoc struct {
	By     []sendgate.Field `json:"by"`
	Values []string         `json:"values"`
	Limits []limitDoc       `json:"limits"`
}

type limitDoc struct {
	Window sendgate.Duration `json:"window"`
	Limit  int               `json:"limit"`
}

func valueOf(e limits.Entry) valueDoc {
	doc := valueDoc{By: e.By, Values: e.Values}
	for _, l := range e.Limits {
		doc.Limits = append(doc.Limits, limitDoc(l))
	}
	return doc
}

func (s *Server) setLimits(c *call) (reply, error) {
	meta, err := c.meta()
	if err != nil {
		return reply{}, err
	}
	if err := meta.Validate(); err != nil {
		return reply{}, err
	}
	data, err := c.body(maxBodyBytes)
	if err != nil {
		return reply{}, err
	}
	e, err := parseLimits(data)
	if err != nil {
		return reply{}, err
	}
	if len(e.Limits) == 0 {
		e, err = s.o.Limits.Remove(c.r.Context(), e.Value, meta.Actor)
	} else {
		e, err = s.o.Limits.Set(c.r.Context(), e, meta.Actor)
	}
	if err != nil {
		return reply{}, err
	}
	return reply{body: valueOf(e)}, nil
}

type limitsDoc struct {
	Entries []valueDoc `json:"entries"`
	Next    string     `json:"next,omitempty"`
}

func (s *Server) listLimits(c *call) (reply, error) {
	by, after, limit, err := parseLimitsPage(c.r.URL.RawQuery)
	if err != nil {
		return reply{}, err
	}
	page, err := s.o.Limits.List(c.r.Context(), by, after, limit)
	if err != nil {
		return reply{}, err
	}
	doc := limitsDoc{Next: page.Next}
	for _, e := range page.Entries {
		doc.Entries = append(doc.Entries, valueOf(e))
	}
	return reply{body: doc}, nil
}

// parseLimitsPage reads which limits are asked for: those of all fields where by
// is left out. Parameters that are not known are ignored, as long as the query
// can be read at all.
func parseLimitsPage(query string) (by []sendgate.Field, after string, limit int, err error) {
	given, err := url.ParseQuery(query)
	if err != nil {
		return nil, "", 0, sendgate.Errorf(sendgate.CodeInvalidField, "", "the query is not escaped correctly")
	}
	var errs sendgate.Errors
	limit = int(whole(given["limit"], "limit", defaultLimits, 1, limits.MaxPage, &errs))
	for _, name := range []string{"by", "after"} {
		if len(given[name]) > 1 {
			errs.Add(sendgate.Errorf(sendgate.CodeInvalidField, name, "has to be given once"))
		}
	}
	if given.Has("by") {
		by = fieldsOf(strings.Split(given.Get("by"), ","))
	}
	return by, given.Get("after"), limit, errs.Err()
}

const defaultLimits = 100
