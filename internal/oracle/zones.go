package oracle

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

// Zones are the time zones of a tz database. They are known by exactly the
// names that they have there.
type Zones struct{ byName map[string]*time.Location }

// NewZones reads a tz database from a zip archive, one file a zone.
func NewZones(archive []byte) (*Zones, error) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	z := &Zones{byName: map[string]*time.Location{}}
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if z.byName[f.Name], err = readZone(f); err != nil {
			return nil, fmt.Errorf("zone %s: %w", f.Name, err)
		}
	}
	return z, nil
}

func readZone(f *zip.File) (*time.Location, error) {
	content, err := f.Open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(f.Name, data)
}

// Has tells whether there is a zone of that name.
func (z *Zones) Has(name string) bool { return z.byName[name] != nil }

// Load returns a zone that there is.
func (z *Zones) Load(name string) *time.Location { return z.byName[name] }
