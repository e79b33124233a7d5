package api

import (
	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

func (s *Server) getPreferences(c *call) (reply, error) {
	user, err := c.user()
	if err != nil {
		return reply{}, err
	}
	p, err := s.o.Preferences.Get(c.r.Context(), user)
	if err != nil {
		return reply{}, err
	}
	return reply{etag: etagOf(p.Revision), body: documentOf(user, p)}, nil
}

// editPreferences answers PUT and PATCH alike: what a body does not name stays
// as it is.
func (s *Server) editPreferences(c *call) (reply, error) {
	user, err := c.user()
	if err != nil {
		return reply{}, err
	}
	meta, err := c.meta()
	if err != nil {
		return reply{}, err
	}
	match, err := parseIfMatch(c.r.Header)
	if err != nil {
		return reply{}, err
	}
	data, err := c.body(maxBodyBytes)
	if err != nil {
		return reply{}, err
	}
	edit, err := parseEdit(data, user)
	if err != nil {
		return reply{}, err
	}
	p, err := s.update(c, user, edit, match, meta)
	if err != nil {
		return reply{}, err
	}
	return reply{etag: etagOf(p.Revision), body: documentOf(user, p)}, nil
}

// update edits under a precondition. The service edits at one revision or at
// any, so that of a list the one that stands is chosen, and chosen again if it
// has moved on meanwhile. Revisions only rise: each of the list has its turn
// once at most.
func (s *Server) update(c *call, user sendgate.UserID, e prefs.Edit, match *precondition, meta prefs.Meta) (*sendgate.Preferences, error) {
	ctx := c.r.Context()
	switch {
	case match.any:
		return s.o.Preferences.Update(ctx, user, e, nil, meta)
	case len(match.revisions) == 1:
		return s.o.Preferences.Update(ctx, user, e, &match.revisions[0], meta)
	}
	for {
		now, err := s.o.Preferences.Get(ctx, user)
		if err != nil {
			return nil, err
		}
		if !match.allows(now.Revision) {
			return nil, sendgate.Errorf(sendgate.CodeRevisionMismatch, "If-Match", "the preferences are at revision %d", now.Revision)
		}
		p, err := s.o.Preferences.Update(ctx, user, e, &now.Revision, meta)
		if err == nil || sendgate.CodeOf(err) != sendgate.CodeRevisionMismatch {
			return p, err
		}
	}
}
