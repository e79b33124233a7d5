package api

import (
	"time"

	"github.com/sendgate/sendgate"
)

// instant is an instant as the interface writes it: RFC 3339, UTC, with
// milliseconds. It is empty for the zero time, and then left out.
type instant string

const instantLayout = "2006-01-02T15:04:05.000Z"

// instantOf drops what is finer than a millisecond.
func instantOf(t time.Time) instant {
	if t.IsZero() {
		return ""
	}
	return instant(t.UTC().Format(instantLayout))
}

// appendNotBefore writes a member that is an instant, rounded up to a
// millisecond: whoever asks again at an instant at which it will be let through
// must not come too early. The zero time is left out.
func appendNotBefore(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	t = t.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond)
	return append(t.UTC().AppendFormat(append(append(b, name...), '"'), instantLayout), '"')
}

// parseInstant reads RFC 3339 with any offset. Years before 1970 are refused,
// so that no instant is the zero time, which means now.
func parseInstant(s, field string) (time.Time, *sendgate.Error) {
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil || t.Unix() < 0 {
		return time.Time{}, sendgate.Errorf(sendgate.CodeInvalidField, field, "has to be an instant of RFC 3339, such as 2026-12-01T09:30:00.000Z")
	}
	return t, nil
}
