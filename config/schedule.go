package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sendgate/sendgate"
)

// leastEvery is the shortest time between runs. Five fields cannot say less;
// `@every` can, and the library makes a second of anything below one.
const leastEvery = time.Minute

// aDay is from when on a schedule is asked for its first run. Any will do.
var aDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ParseSchedule reads a schedule in cron's five fields, minute, hour, day of
// the month, month and day of the week, or a name such as `@hourly`, or
// `@every 20m`, of a minute at least. Schedules are in UTC, and name no zone of
// their own: ask Next with instants in UTC. One that never comes is refused.
func ParseSchedule(spec string) (cron.Schedule, error) {
	switch trimmed := strings.TrimSpace(spec); {
	case trimmed == "":
		return nil, errors.New(`must be a schedule, such as "*/15 * * * *"`)
	case strings.HasPrefix(trimmed, "TZ="), strings.HasPrefix(trimmed, "CRON_TZ="):
		// Not the library's to see: it panics where only a zone is given, and
		// looks zones up on the machine.
		return nil, errors.New("must not name a zone: schedules are in UTC")
	}
	schedule, err := cron.ParseStandard(spec)
	if err != nil {
		return nil, fmt.Errorf(`must be five fields, such as "*/15 * * * *", or a name, such as @hourly: %s`, sendgate.Clip(err.Error()))
	}
	if every, ok := schedule.(cron.ConstantDelaySchedule); ok && every.Delay < leastEvery {
		return nil, fmt.Errorf("must leave at least %v between runs", leastEvery)
	}
	if schedule.Next(aDay).IsZero() {
		return nil, fmt.Errorf("%q never comes: there is no such day", sendgate.Clip(spec))
	}
	return schedule, nil
}
