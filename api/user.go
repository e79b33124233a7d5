package api

import (
	"net/url"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// user is the user of the path. The segment is unescaped here, exactly once,
// and taken as it is: `a%2Fb` names a/b, `a%252Fb` names a%2Fb, and + is +.
func (c *call) user() (sendgate.UserID, error) {
	id, err := url.PathUnescape(c.rawUser)
	if err != nil {
		return "", sendgate.Errorf(sendgate.CodeInvalidUserID, "user_id", "the user id in the path is not escaped correctly")
	}
	user := sendgate.UserID(id)
	if fault := user.Validate("user_id"); fault != nil {
		return "", fault
	}
	return user, nil
}

// meta says who asks for a change and why.
func (c *call) meta() (prefs.Meta, error) {
	m := prefs.Meta{From: c.from()}
	for _, h := range []struct {
		name string
		into *string
	}{{"Sendgate-Actor", &m.Actor}, {"Sendgate-Reason", &m.Reason}} {
		given := c.r.Header.Values(h.name)
		switch len(given) {
		case 0:
		case 1:
			*h.into = given[0]
		default:
			return m, malformedHeader(h.name, "the header is given %d times", len(given))
		}
	}
	return m, nil
}
