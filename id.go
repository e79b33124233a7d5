package sendgate

import (
	"unicode"
	"unicode/utf8"
)

// MaxIDBytes is the longest id of any kind, in bytes.
const MaxIDBytes = 256

// UserID names the person a notification is for: 1 to 256 bytes of valid UTF-8
// without control characters. It is opaque and compared byte for byte: never
// folded, trimmed or repaired, so that two spellings are two users.
type UserID string

// Validate refuses an id that is not legal, with CodeInvalidUserID and the
// given field.
func (u UserID) Validate(field string) *Error {
	if why := idFault(string(u)); why != "" {
		return Errorf(CodeInvalidUserID, field, "a user id %s", why)
	}
	return nil
}

// idFault says what is wrong with an id, or nothing.
func idFault(id string) string {
	switch {
	case id == "":
		return "must not be empty"
	case len(id) > MaxIDBytes:
		return "must not be longer than 256 bytes"
	case !utf8.ValidString(id):
		return "must be valid UTF-8"
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return "must not contain control characters"
		}
	}
	return ""
}
