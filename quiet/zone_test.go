package quiet

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var refusedNames = []string{
	"", "Local", "local", "Factory", "Mars/Base", "america/new_york", "AMERICA/NEW_YORK", "utc", "GMT+5", "UTC+1",
	"EST5", "+05:00", "UTC ", " UTC", "UTC\n", "UTC\x00", "../UTC", "./UTC", "/UTC", "Etc/../UTC", "Europe//Berlin",
	"Europe", "Europe/", "Europe/Berlin/", `Europe\Berlin`, "right/UTC", "posix/UTC", "localtime", "posixrules",
	"zone.tab", "tzdata.zi", "/etc/localtime", "Europe/Bérlin", strings.Repeat("UTC", 1<<20),
}

func TestLoadZoneRefuses(t *testing.T) {
	for _, name := range refusedNames {
		z, err := LoadZone(name)
		wantField(t, err, "timezone")
		if z != nil {
			t.Errorf("LoadZone(%.40q) returned a zone", name)
		}
		if len(err.Error()) > 300 {
			t.Errorf("LoadZone(%.40q): the error is %d bytes long", name, len(err.Error()))
		}
	}
}

func TestLoadZoneAccepts(t *testing.T) {
	legacy := []string{"US/Eastern", "Asia/Calcutta", "GB", "UTC", "Etc/GMT+5", "EST5EDT", "Europe/Kiev", "Zulu"}
	names := ZoneNames()
	for _, name := range legacy {
		if _, found := slices.BinarySearch(names, name); !found {
			t.Errorf("%s is not among the names", name)
		}
	}
	for _, name := range names {
		z := mustZone(t, name)
		if z.Name() != name {
			t.Errorf("the name of %s is %s", name, z.Name())
		}
		if again := mustZone(t, name); again != z {
			t.Errorf("%s is parsed twice", name)
		}
	}
	if len(names) < 500 || !slices.IsSorted(names) {
		t.Errorf("%d names, sorted: %t", len(names), slices.IsSorted(names))
	}
	names[0] = "changed"
	if ZoneNames()[0] == "changed" {
		t.Error("a caller can change the names")
	}
}

func TestLoadZoneConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	names := append(ZoneNames(), refusedNames...)
	for range 8 {
		wg.Go(func() {
			for _, name := range names {
				if z, err := LoadZone(name); err == nil && z.Name() != name {
					t.Errorf("LoadZone(%q) is %s", name, z.Name())
				}
			}
		})
	}
	wg.Wait()
	if got, most := len(openDatabase().zones), len(ZoneNames()); got != most {
		t.Errorf("%d zones are kept, there are %d", got, most)
	}
}

func TestZeroZoneIsUTC(t *testing.T) {
	h := Hours{Quiet: []Window{mustWindow(t, "22:00", "07:00")}}
	at := mustTime(t, "2026-01-01T23:00:00Z")
	for _, z := range []*Zone{nil, {}} {
		open, ok := h.NextOpen(at, z)
		if z.Name() != "UTC" || !ok || !open.Equal(mustTime(t, "2026-01-02T07:00:00Z")) {
			t.Errorf("%s: %s, %t", z.Name(), open, ok)
		}
	}
}

// TestSteadyUntil asks every zone on each day of a leap year and checks that the
// offset does hold so long. On the year's last day the standard library's own
// bound is already past.
func TestSteadyUntil(t *testing.T) {
	first, next := mustTime(t, "2028-01-01T12:00:00Z").Unix(), mustTime(t, "2029-01-01T00:00:00Z").Unix()
	past := 0
	for _, z := range differentZones(t) {
		for unix := first; unix < next; unix += secondsPerDay {
			until, offset := z.steadyUntil(unix), z.offsetAt(unix)
			if until <= unix || until != forever && z.offsetAt(until-1) != offset || z.offsetAt(min(until-1, unix+secondsPerDay)) != offset {
				t.Fatalf("%s at %d: steady until %d", z.Name(), unix, until)
			}
			if _, end := time.Unix(unix, 0).In(z.location).ZoneBounds(); !end.IsZero() && end.Unix() <= unix {
				past++
				if until != next {
					t.Errorf("%s at %d: steady until %d, want the end of the year", z.Name(), unix, until)
				}
			}
		}
	}
	t.Logf("%d bounds were past", past)
}

// TestMachineFilesAreNotRead runs the golden and the name tests again in a
// process that is shown a folder of zone files as a machine might have it, with
// the extra names that must stay illegal, and in which every zone is Kiritimati.
func TestMachineFilesAreNotRead(t *testing.T) {
	const marker = "QUIET_TEST_ZONES_ARE_FAKE"
	if os.Getenv(marker) != "" {
		for _, name := range []string{"right/UTC", "posix/UTC", "localtime", "posixrules"} {
			if _, err := time.LoadLocation(name); err != nil {
				t.Errorf("the trap is not set: %v", err)
			}
		}
		fake, err := time.LoadLocation("America/New_York")
		if err != nil || mustTime(t, "2026-01-01T00:00:00Z").In(fake).Hour() != 14 {
			t.Errorf("the trap is not set: %v, %v", fake, err)
		}
		return
	}
	folder := t.TempDir()
	data := zoneFile(t, "Pacific/Kiritimati")
	for _, name := range append(ZoneNames(), "right/UTC", "posix/UTC", "localtime", "posixrules") {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := "^(TestMachineFilesAreNotRead|TestGolden|TestLoadZoneRefuses|TestLoadZoneAccepts)$"
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run="+run)
	cmd.Env = append(os.Environ(), marker+"=1", "ZONEINFO="+folder)
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Count(out, []byte("--- PASS")) != 4 {
		t.Errorf("among other zone files: %v\n%s", err, out)
	}
}

// zoneFile returns the compiled form of a zone.
func zoneFile(t *testing.T, name string) []byte {
	t.Helper()
	archive, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := archive.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
