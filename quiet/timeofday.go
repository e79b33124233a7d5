package quiet

import "fmt"

const (
	minutesPerDay = 24 * 60
	secondsPerDay = 24 * 60 * 60
)

// endOfDay is 24:00, the midnight at which a day ends.
const endOfDay TimeOfDay = minutesPerDay

// TimeOfDay is a reading of the wall clock in minutes since local midnight,
// from 0 to 1440. 1440 is "24:00" and legal only as the end of a window. The
// zero value is midnight.
type TimeOfDay int16

// ParseTimeOfDay reads exactly HH:MM, from "00:00" to "24:00". Whether "24:00"
// is legal depends on where it stands; [Window.Validate] judges that. The error
// is an [*Error] without a Field.
func ParseTimeOfDay(s string) (TimeOfDay, error) { return parseTimeOfDay("", s) }

// parseTimeOfDay is ParseTimeOfDay for a caller who knows the field.
func parseTimeOfDay(field, s string) (TimeOfDay, error) {
	if len(s) != len("HH:MM") || s[2] != ':' {
		return 0, &Error{field, quoted(s) + " is not a time of day; it is written HH:MM, as in 07:30."}
	}
	hour, okHour := twoDigits(s[0], s[1])
	minute, okMinute := twoDigits(s[3], s[4])
	if !okHour || !okMinute {
		return 0, &Error{field, quoted(s) + " is not a time of day; it is written HH:MM, as in 07:30."}
	}
	t := TimeOfDay(hour*60 + minute)
	if minute > 59 || t > endOfDay {
		return 0, &Error{field, quoted(s) + " is no time of a day; the last is 23:59, or 24:00 as an end."}
	}
	return t, nil
}

// twoDigits reads two ASCII digits. No sign, no space, no digit of another
// script: strconv would be more generous.
func twoDigits(tens, ones byte) (n int, ok bool) {
	if tens < '0' || tens > '9' || ones < '0' || ones > '9' {
		return 0, false
	}
	return int(tens-'0')*10 + int(ones-'0'), true
}

// String returns HH:MM, which [ParseTimeOfDay] reads back. A value outside the
// legal range is shown as such.
func (t TimeOfDay) String() string {
	if !t.legal() {
		return fmt.Sprintf("TimeOfDay(%d)", int16(t))
	}
	return string([]byte{
		'0' + byte(t/600), '0' + byte(t/60%10), ':', '0' + byte(t%60/10), '0' + byte(t%10),
	})
}

func (t TimeOfDay) legal() bool { return t >= 0 && t <= endOfDay }

// seconds is the same reading in seconds since local midnight.
func (t TimeOfDay) seconds() int64 { return int64(t) * 60 }
