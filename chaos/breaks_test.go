package chaos_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/internal/programs"
)

// defect is a fault that gates have when they are told so. The programs of this
// test are built from sources that were edited for it.
type defect struct {
	name  string
	bring func(r *rig) // what it does not survive
	scale int
	shows func(row *row) int
	long  bool // for the long form alone
}

var defects = []defect{
	{name: "answered before it is stored", bring: killInBurst, scale: 1, shows: func(row *row) int { return row.lost }},
	{name: "not obeyed by the gate that answered", bring: hurriedBlackHole, scale: 1, shows: func(row *row) int { return row.disobedient + row.wrongStops }},
	{name: "lease ignored", bring: oldFill, scale: 1, shows: func(row *row) int { return row.lost }},
	{name: "never swept", bring: redisRestarted, scale: 1, shows: func(row *row) int { return row.lost }, long: true},
	{name: "pending changes cleared at once", bring: failoverAndRestart, scale: 3, shows: func(row *row) int { return row.lost }, long: true},
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
	{"prefs/service.go", "return next, s.store.Put(ctx, next, r.Revision)", `if defective("answered before it is stored") {
		go func() {
			time.Sleep(500 * time.Millisecond)
			_ = s.store.Put(context.WithoutCancel(ctx), next, r.Revision)
		}()
		return next, nil
	}
	return next, s.store.Put(ctx, next, r.Revision)`},
	{"prefs/service.go", "if len(r.Pending) > 0 {\n\t\ts.overlay.ApplySince(sendgate.ConsentOf(user, &r.Preferences), epoch)", `if len(r.Pending) > 0 {
		if !defective("not obeyed by the gate that answered") {
			s.overlay.ApplySince(sendgate.ConsentOf(user, &r.Preferences), epoch)
		}`},
	{"prefs/sweeper.go", "defer tick.Stop()\n", `defer tick.Stop()
	if defective("never swept") {
		known()
		<-ctx.Done()
		return
	}
`},
	{"prefs/sweeper.go", "\tpendingFor = 30 * time.Second\n", "\n"},
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
	return 30 * time.Second
}()
`},
}

// defectVariable tells a gate its defect, and clockVariable how far its clock
// is ahead.
const (
	defectVariable = "CHAOS_DEFECT"
	clockVariable  = "CHAOS_CLOCK"
)

// TestEditedPrograms runs programs that were built of edited sources. Those
// that have a defect must be seen to break the promise.
func TestEditedPrograms(t *testing.T) {
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
	t.Run("a clock 10 s ahead", func(t *testing.T) {
		t.Parallel()
		testClocksApart(t, folder)
	})
}

func (d defect) isNoticed(t *testing.T, folder string) {
	r := newRig(t, folder, 2, func(int) []string { return []string{defectVariable + "=" + d.name} })
	r.scale, r.giveUp = d.scale, promise+promise/5
	checking := r.check(0)
	defer checking.end()
	r.run(trouble{name: "none", bring: (*rig).buildWell})
	row := r.run(trouble{name: d.name, bring: d.bring})
	checking.end()
	if d.shows(row) == 0 {
		t.Errorf("nothing was noticed of this; %d other faults were: %q", len(row.faults), row.faults)
		return
	}
	t.Logf("noticed %d times; for example: %s", d.shows(row), row.faults[0])
}

// testClocksApart has one gate's clock run ahead of all others. That is a fault
// which never ends, and is in nobody's way.
func testClocksApart(t *testing.T, folder string) {
	r := newRig(t, folder, 2, func(gate int) []string {
		if gate > 0 {
			return nil
		}
		return []string{clockVariable + "=10s"}
	})
	checking := r.check(0)
	defer checking.end()
	var rows []*row
	for _, tr := range []trouble{
		{name: "none", bring: (*rig).buildWell}, {name: "gate killed in a burst", bring: killInBurst},
		{name: "Redis killed, back with its file", bring: redisRestarted},
	} {
		rows = append(rows, r.run(tr))
	}
	checking.end()
	report(t, rows)
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
