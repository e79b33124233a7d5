package api

import (
	"unicode/utf8"

	"github.com/sendgate/sendgate"
)

// maxPlainBytes is the longest body that is read as a plain check. All its ids
// share one string, which is kept as long as one of them is.
const maxPlainBytes = 4 << 10

// requiredMembers are the bits of the members that a check must have.
const requiredMembers = 0b1111

// plainCheck reads a check as most routers write it: an object of strings
// without escapes, and of attributes that are such an object. It leaves everything
// else to the decoder, and every refusal: what it takes the decoder would take,
// too, and understand the same.
func plainCheck(data []byte) (c sendgate.Check, ok bool) {
	if len(data) > maxPlainBytes || !utf8.Valid(data) {
		return c, false
	}
	t := plainText{text: string(data)}
	priority, seen := "normal", uint(0)
	if !t.take('{') {
		return c, false
	}
	for more := true; more; more = t.take(',') {
		name, named := t.quoted()
		if !named || !t.take(':') {
			return c, false
		}
		if name == "attributes" && c.Attributes == nil {
			if c.Attributes, ok = t.attributes(); !ok {
				return c, false
			}
			continue
		}
		into, bit := plainMember(&c, &priority, name)
		if into == nil || seen&bit != 0 {
			return c, false
		}
		seen |= bit
		if *into, ok = t.quoted(); !ok {
			return c, false
		}
	}
	var known bool
	c.Priority, known = sendgate.ParsePriority(priority)
	ok = t.take('}') && t.ends() && known && priority != "" && seen&requiredMembers == requiredMembers
	return c, ok
}

// plainMember is where a string goes, and its bit; nil is nowhere.
func plainMember(c *sendgate.Check, priority *string, name string) (into *string, bit uint) {
	switch name {
	case "notification_id":
		return &c.NotificationID, 1 << 0
	case "user_id":
		return (*string)(&c.User), 1 << 1
	case "topic":
		return &c.Topic, 1 << 2
	case "channel":
		return &c.Channel, 1 << 3
	case "campaign_id":
		return &c.CampaignID, 1 << 4
	case "sender_id":
		return &c.SenderID, 1 << 5
	case "creative_id":
		return &c.CreativeID, 1 << 6
	case "household_id":
		return &c.HouseholdID, 1 << 7
	case "device_id":
		return &c.DeviceID, 1 << 8
	case "priority":
		return priority, 1 << 9
	}
	return nil, 0
}

// plainText is JSON text, valid UTF-8, and how far it has been read.
type plainText struct {
	text string
	at   int
}

// ends tells whether nothing but white space is left.
func (t *plainText) ends() bool {
	for t.at < len(t.text) {
		switch t.text[t.at] {
		case ' ', '\t', '\r', '\n':
			t.at++
		default:
			return false
		}
	}
	return true
}

// take reads one character, after white space, if it is the one that is asked
// for.
func (t *plainText) take(c byte) bool {
	if t.ends() || t.text[t.at] != c {
		return false
	}
	t.at++
	return true
}

// attributes reads an object of strings, none of them under a name twice.
func (t *plainText) attributes() (all map[string]string, ok bool) {
	if !t.take('{') {
		return nil, false
	}
	all = map[string]string{}
	if t.take('}') {
		return all, true
	}
	for more := true; more; more = t.take(',') {
		name, named := t.quoted()
		if _, twice := all[name]; twice || !named || !t.take(':') {
			return nil, false
		}
		if all[name], ok = t.quoted(); !ok {
			return nil, false
		}
	}
	return all, t.take('}')
}

// quoted reads a string without escapes.
func (t *plainText) quoted() (s string, ok bool) {
	if !t.take('"') {
		return "", false
	}
	for end := t.at; end < len(t.text); end++ {
		switch c := t.text[end]; {
		case c == '"':
			s, t.at = t.text[t.at:end], end+1
			return s, true
		case c == '\\' || c < ' ':
			return "", false
		}
	}
	return "", false
}
