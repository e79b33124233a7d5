package api

import (
	"math"
	"net/url"
	"strconv"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

const (
	defaultChanges = 100
	maxChanges     = 1000
)

type changesDoc struct {
	Changes []changeDoc `json:"changes"`
}

type changeDoc struct {
	Revision int64        `json:"revision"`
	At       instant      `json:"at"`
	Actor    string       `json:"actor,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	From     string       `json:"from,omitempty"`
	What     []prefs.Diff `json:"what"`
}

func (s *Server) listChanges(c *call) (reply, error) {
	user, err := c.user()
	if err != nil {
		return reply{}, err
	}
	after, limit, err := parsePage(c.r.URL.RawQuery)
	if err != nil {
		return reply{}, err
	}
	changes, err := s.o.Preferences.Changes(c.r.Context(), user, after, limit)
	if err != nil {
		return reply{}, err
	}
	var doc changesDoc
	for _, ch := range changes {
		doc.Changes = append(doc.Changes, changeDoc{ch.Revision, instantOf(ch.At), ch.Actor, ch.Reason, ch.From, ch.What})
	}
	return reply{body: doc}, nil
}

// parsePage reads which changes are asked for. Parameters that are not known
// are ignored, as long as the query can be read at all.
func parsePage(query string) (after int64, limit int, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0, 0, sendgate.Errorf(sendgate.CodeInvalidField, "", "the query is not escaped correctly")
	}
	var errs sendgate.Errors
	after = whole(values["after"], "after", 0, 0, math.MaxInt64, &errs)
	limit = int(whole(values["limit"], "limit", defaultChanges, 1, maxChanges, &errs))
	return after, limit, errs.Err()
}

// whole reads a parameter that is a whole number, and may be left out.
func whole(given []string, name string, other, least, most int64, errs *sendgate.Errors) int64 {
	if len(given) == 0 {
		return other
	}
	n, err := strconv.ParseInt(given[0], 10, 64)
	if err != nil || len(given) > 1 || n < least || n > most {
		errs.Add(sendgate.Errorf(sendgate.CodeInvalidField, name, "has to be given once, as a whole number from %d to %d", least, most))
		return other
	}
	return n
}
