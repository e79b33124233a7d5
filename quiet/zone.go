package quiet

import (
	"archive/zip"
	_ "embed" // for zoneinfo
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// zoneinfo is the IANA time zone database (public domain), compiled, as the Go
// distribution carries it in lib/time/zoneinfo.zip; this copy is release 2025c,
// from Go 1.26. To renew it, with a newer Go and from the root of the module:
//
//	cp "$(go env GOROOT)/lib/time/zoneinfo.zip" quiet/zoneinfo.zip
//	go test ./quiet/
//
// It is compiled in, and read from memory alone, because the standard library's
// own lookup prefers the files of the machine: those differ in age from machine
// to machine, and where they hold right/UTC, posix/UTC or localtime those names
// would be legal on some machines only.
//
//go:embed zoneinfo.zip
var zoneinfo string

// factory is a placeholder in the database, for machines on which nobody has
// set a zone yet. It is not a place.
const factory = "Factory"

// database is the index of zoneinfo. It has one entry per legal name and never
// grows, so nobody can fill the memory by asking for names that do not exist.
type database struct {
	names []string                // sorted
	zones map[string]func() *Zone // parsed when first asked for
}

// openDatabase panics if the embedded file is broken: then the binary is.
var openDatabase = sync.OnceValue(func() database {
	archive, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		panic(fmt.Sprintf("quiet: the embedded zoneinfo.zip cannot be read: %v", err))
	}
	db := database{zones: make(map[string]func() *Zone, len(archive.File))}
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, "/") || file.Name == factory {
			continue
		}
		db.names = append(db.names, file.Name)
		db.zones[file.Name] = sync.OnceValue(func() *Zone { return parseZone(file) })
	}
	slices.Sort(db.names)
	return db
})

func parseZone(file *zip.File) *Zone {
	location, err := func() (*time.Location, error) {
		r, err := file.Open()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		return time.LoadLocationFromTZData(file.Name, data)
	}()
	if err != nil {
		panic(fmt.Sprintf("quiet: %s in the embedded zoneinfo.zip cannot be read: %v", file.Name, err))
	}
	return &Zone{location}
}

// Zone is a time zone of the IANA database, with all its past and future
// changes. It is immutable. Nil and the zero value are UTC.
type Zone struct {
	location *time.Location
}

// Name returns the name under which the zone was loaded. A legacy name stays as
// it is: US/Eastern does not become America/New_York.
func (z *Zone) Name() string {
	if z == nil || z.location == nil {
		return time.UTC.String()
	}
	return z.location.String()
}

// LoadZone returns the zone of exactly that name, such as "Europe/Berlin" or
// the legacy "US/Eastern". The error is an [*Error] for "timezone", for a name
// that the database does not hold: in another case, with a space, empty,
// "Local", an offset such as "GMT+5". The database's placeholder, "Factory", is
// refused too.
//
// It is safe for concurrent use. Each zone is parsed once and then shared.
func LoadZone(name string) (*Zone, error) {
	zone, ok := openDatabase().zones[name]
	if !ok {
		return nil, &Error{fieldTimezone, quoted(name) + " is not a name in the IANA time zone database."}
	}
	return zone(), nil
}

// ZoneNames returns all names that [LoadZone] accepts, sorted. The slice is the
// caller's.
func ZoneNames() []string { return slices.Clone(openDatabase().names) }

// offsetAt returns how far the zone's clock is ahead of UTC at an instant. Both
// are in seconds, the instant since 1970-01-01 00:00 UTC.
func (z *Zone) offsetAt(unix int64) int64 {
	if z == nil || z.location == nil {
		return 0
	}
	_, offset := time.Unix(unix, 0).In(z.location).Zone()
	return int64(offset)
}

// steadyUntil returns an instant after unix, up to which the offset that is in
// force at unix certainly stays in force. It need not be a change: past the
// changes that the database lists one by one, the standard library also splits
// the time at the turn of the (UTC) year.
func (z *Zone) steadyUntil(unix int64) int64 {
	if z == nil || z.location == nil {
		return forever
	}
	_, end := time.Unix(unix, 0).In(z.location).ZoneBounds()
	if end.IsZero() {
		return forever
	}
	if until := end.Unix(); until > unix {
		return until
	}
	// The standard library takes every year for 365 days there. On the last day
	// of a leap year it gives an end that is already past, and a walk that
	// trusted it would stand still. The offset then holds to the end of the
	// year, which is the end of this day.
	return unix + readClock(unix).toMidnight()
}
