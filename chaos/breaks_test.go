package chaos_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/internal/programs"
)

// defect is a fault that gates have when they are told so. The programs are
// built from sources that were edited for it.
type defect struct {
	name    string
	bring   func(r *rig) // what it does not survive
	touches reach
	scale   int
	shows   func(row *row) int
	long    bool // for the long form alone
}

var defects = []defect{
	{name: "answered before it is stored", bring: killInBurst, touches: theVictim, scale: 1, shows: func(row *row) int { return row.lost }},
	{
		name: "not obeyed by the gate that answered", bring: hurriedBlackHole, touches: theVictim, scale: 1,
		shows: func(row *row) int { return row.disobedient + row.wrongStops },
	},
	{name: "lease ignored", bring: oldFill, touches: theVictim, scale: 1, shows: func(row *row) int { return row.lost }},
	{name: "never swept", bring: twoMasters, touches: noGate, scale: 1, shows: func(row *row) int { return row.wrongSends + row.wrongStops }},
	{name: "never swept", bring: redisRestarted, touches: everyGate, scale: 1, shows: func(row *row) int { return row.lost }, long: true},
	{
		name: "pending changes cleared at once", bring: failoverAndRestart, touches: everyGate, scale: 3,
		shows: func(row *row) int { return row.lost }, long: true,
	},
}

// edits bring the defects in: what stands once in a source file, and what is
// put in its place. A file that is not there is added.
var edits = []struct{ file, text, instead string }{
	{"clock.go", "time.Now()", "time.Now().Add(ahead)"},
	{"clock_ahead.go", "", `package sendgate

import (
	"os"
	"time"
)

var ahead, _ = time.ParseDuration(os.Getenv("` + clockVariable + `"))
`},
	{"prefs/write.go", "return next, s.store.Put(ctx, next, r.Revision)", `if defective("answered before it is stored") {
		go func() {
			time.Sleep(500 * time.Millisecond)
			_ = s.store.Put(context.WithoutCancel(ctx), next, r.Revision)
		}()
		return next, nil
	}
	return next, s.store.Put(ctx, next, r.Revision)`},
	{"prefs/service.go", "\ts.overlay.ApplySince(sendgate.ConsentOf(user, &r.Preferences), epoch)\n", `	if !defective("not obeyed by the gate that answered") {
		s.overlay.ApplySince(sendgate.ConsentOf(user, &r.Preferences), epoch)
	}
`},
	{"prefs/sweeper.go", "once := sync.OnceFunc(known)\n", `once := sync.OnceFunc(known)
	if defective("never swept") {
		once()
		<-ctx.Done()
		return
	}
`},
	{"prefs/sightings.go", "\tpendingFor = 30 * time.Second\n", "\n"},
	{"prefs/rediscache/rediscache.go", "redis.NewScript(fillSource)", "redis.NewScript(defective(fillSource))"},
	{"prefs/rediscache/defective.go", "", `package rediscache

import (
	"os"
	"strings"
)

func defective(fill string) string {
	if os.Getenv("` + defectVariable + `") == "lease ignored" {
		return strings.Replace(fill, "return 0", "", 1)
	}
	return fill
}
`},
	{"bloom/archive/archive.go", "\t\treturn buffered.Flush()\n", "\t\theldUp()\n\t\treturn buffered.Flush()\n"},
	{"bloom/archive/held_up.go", "", `package archive

import (
	"os"
	"time"
)

func heldUp() {
	for os.Getenv("` + heldUpVariable + `") == "publishing" {
		time.Sleep(time.Second)
	}
}
`},
	{"prefs/defective.go", "", `package prefs

import (
	"os"
	"time"
)

func defective(name string) bool { return os.Getenv("` + defectVariable + `") == name }

var pendingFor = func() time.Duration {
	if defective("pending changes cleared at once") {
		return 0
	}
	if d, err := time.ParseDuration(os.Getenv("` + pendingVariable + `")); err == nil {
		return d
	}
	return 30 * time.Second
}()
`},
}

// What edited programs read from their environment.
const (
	defectVariable  = "CHAOS_DEFECT"  // a gate's defect
	clockVariable   = "CHAOS_CLOCK"   // how far its clock is ahead
	pendingVariable = "CHAOS_PENDING" // how long changes are pending at the least
	heldUpVariable  = "CHAOS_HELD_UP" // at what a builder stands still
)

// TestDefectsAreNoticed runs programs that have a defect. They must be seen to
// break the promise.
func TestDefectsAreNoticed(t *testing.T) {
	t.Cleanup(client.CloseIdleConnections)
	folder := programs.Build(t, "-overlay", overlay(t))
	for _, d := range defects {
		if !d.long || *long {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				d.isNoticed(t, folder)
			})
		}
	}
}

func (d defect) isNoticed(t *testing.T, folder string) {
	r := newRig(t, rigOptions{scene: "defects", folder: folder, gates: 2, redis: onOne, environment: everyGateHas(defectVariable + "=" + d.name)})
	r.scale, r.giveUp = d.scale, promise+promise/5
	checking := r.check(0)
	defer checking.end()
	r.run(calm)
	row := r.run(trouble{name: d.name, bring: d.bring, touches: d.touches})
	checking.end()
	if d.shows(row) == 0 {
		t.Errorf("nothing was noticed of this; %d other faults were: %q", len(row.faults), row.faults)
		return
	}
	t.Logf("noticed %d times; for example: %s", d.shows(row), row.faults[0])
}

// overlay writes the edited sources, and the list of them that `go build`
// takes.
func overlay(t *testing.T) (list string) {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	for _, e := range edits {
		file, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(e.file)))
		if err != nil {
			t.Fatal(err)
		}
		edited := filepath.Join(dir, strings.ReplaceAll(e.file, "/", "_"))
		from := replaced[file]
		if from == "" {
			from = file
		}
		source, err := os.ReadFile(from)
		if err != nil && e.text != "" {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), e.text); e.text != "" && n != 1 {
			t.Fatalf("%s has %q %d times: the defect does not fit the source any more", e.file, e.text, n)
		}
		if err := os.WriteFile(edited, []byte(edit(string(source), e.text, e.instead)), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[file] = edited
	}
	data, err := json.Marshal(map[string]any{"Replace": replaced})
	list = filepath.Join(dir, "overlay.json")
	if err == nil {
		err = os.WriteFile(list, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func edit(source, text, instead string) string {
	if text == "" {
		return instead
	}
	return strings.Replace(source, text, instead, 1)
}

// hurriedBlackHole has everybody write to the gate that cannot reach Redis.
func hurriedBlackHole(r *rig) {
	r.target.Store(int32(r.victim().index))
	redisBlackHoled(r)
	r.target.Store(-1)
}
