package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate/config"
)

func TestParseSchedule(t *testing.T) {
	at := time.Date(2026, 11, 30, 20, 7, 30, 0, time.UTC)
	for spec, want := range map[string]string{
		"*/15 * * * *":  "2026-11-30T20:15:00Z",
		" 0 4  * * * ":  "2026-12-01T04:00:00Z",
		"30 3 29 2 *":   "2028-02-29T03:30:00Z",
		"0 9 * jan mon": "2027-01-04T09:00:00Z",
		"@hourly":       "2026-11-30T21:00:00Z",
		"@daily":        "2026-12-01T00:00:00Z",
		"@every 1m":     "2026-11-30T20:08:30Z",
		"@every 36h":    "2026-12-02T08:07:30Z",
	} {
		schedule, err := config.ParseSchedule(spec)
		if err != nil {
			t.Errorf("%q: %v", spec, err)
		} else if got := schedule.Next(at).Format(time.RFC3339); got != want {
			t.Errorf("%q: next at %s, want %s", spec, got, want)
		}
	}
	const (
		fields = `must be five fields, such as "*/15 * * * *", or a name, such as @hourly: `
		zone   = "must not name a zone: schedules are in UTC"
		never  = "never comes: there is no such day"
		often  = "must leave at least 1m0s between runs"
	)
	for spec, want := range map[string]string{
		"": "must be a schedule", " \t": "must be a schedule", "\n": "must be a schedule",
		"TZ=": zone, "CRON_TZ=": zone, " TZ=": zone, "TZ=UTC": zone, "TZ=UTC 0 4 * * *": zone, "CRON_TZ=Europe/Paris @daily": zone,
		"* * * *": fields, "* * * * * *": fields, "60 * * * *": fields, "*/0 * * * *": fields, "a * * * *": fields, "-1 * * * *": fields,
		"* * * * 7": fields, "@reboot": fields, "@every": fields, "@every soon": fields, "@": fields, "tz=UTC": fields, strings.Repeat("* ", 2000): fields,
		"0 0 30 2 *": never, "0 0 31 4,6,9,11 *": never, ", * * * *": never,
		"@every 59s": often, "@every 1s": often, "@every 1ns": often, "@every 0s": often, "@every -5h": often,
	} {
		if _, err := config.ParseSchedule(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", spec, err, want)
		} else if len(err.Error()) > 200 {
			t.Errorf("%d bytes of error", len(err.Error()))
		}
	}
}

// FuzzParseSchedule looks for a schedule that ends the program, and for one
// that is taken and never comes or comes too often.
func FuzzParseSchedule(f *testing.F) {
	for _, spec := range []string{"*/15 * * * *", "TZ=", "CRON_TZ=UTC @daily", "@every 1h", "0-59/7,3 ? 1 jan-mar *", "0 0 30 2 *"} {
		f.Add(spec)
	}
	at := time.Date(2026, 11, 30, 20, 7, 30, 0, time.UTC)
	f.Fuzz(func(t *testing.T, spec string) {
		schedule, err := config.ParseSchedule(spec)
		if err != nil {
			return
		}
		first := schedule.Next(at)
		if second := schedule.Next(first); !first.After(at) || second.Sub(first) < time.Minute {
			t.Errorf("%q: %v, then %v", spec, first, second)
		}
	})
}

// FuzzSize looks for a size that is taken and is less than nothing, or reads
// differently the second time.
func FuzzSize(f *testing.F) {
	for _, text := range []string{"512MiB", "2GB", "1.5 gib", "0", "9223372036854775807", "8EiB", "1,000", "-1", "NaN"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s, again config.Size
		if s.UnmarshalText([]byte(text)) != nil {
			return
		}
		if err := again.UnmarshalText([]byte(text)); err != nil || s < 0 || again != s || s.String() == "" {
			t.Errorf("%q: %d, %d, %v", text, s, again, err)
		}
	})
}
