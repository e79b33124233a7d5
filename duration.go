package sendgate

import (
	"errors"
	"strconv"
	"time"
)

// Duration is a length of time as people write it in the catalog and over the
// interface: one whole number and one unit, `90s`, `15m`, `24h` or `7d`. A day
// is 24 hours.
type Duration time.Duration

var errDuration = errors.New("a duration is a whole number and one of s, m, h, d, such as 90s, 15m, 24h or 7d")

var durationUnits = map[byte]time.Duration{
	's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour,
}

// ParseDuration reads `90s`, `15m`, `24h`, `7d`. Signs, fractions, leading
// zeros and compounds are refused, and so is what does not fit 100 years.
func ParseDuration(s string) (Duration, error) {
	if len(s) < 2 || s[0] < '1' || s[0] > '9' {
		return 0, errDuration
	}
	unit, ok := durationUnits[s[len(s)-1]]
	if !ok {
		return 0, errDuration
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 63)
	if err != nil || n > uint64(100*365*24*time.Hour/unit) {
		return 0, errDuration
	}
	return Duration(n) * Duration(unit), nil
}

// String writes the longest unit that divides d, but a single day as `24h`.
// What ParseDuration reads back is the same length.
func (d Duration) String() string {
	for _, u := range []struct {
		unit  time.Duration
		least time.Duration
		name  string
	}{{24 * time.Hour, 48 * time.Hour, "d"}, {time.Hour, time.Hour, "h"}, {time.Minute, time.Minute, "m"}, {time.Second, time.Second, "s"}} {
		if td := time.Duration(d); td >= u.least && td%u.unit == 0 {
			return strconv.FormatInt(int64(td/u.unit), 10) + u.name
		}
	}
	return time.Duration(d).String()
}

// MarshalText writes what String says.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what ParseDuration accepts.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}
