package decisionlog_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/quiet"
)

// TestWhatIsWrittenDown holds what is read of a log against what was decided.
func TestWhatIsWrittenDown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.jsonl")
	l := open(t, options(path))
	zone, err := quiet.LoadZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	check := sendgate.Check{NotificationID: "n<1>", User: "ü\u2028{u}", Topic: "promotions", Channel: "push", Priority: sendgate.PriorityLow}
	household := sendgate.Cap{Kind: sendgate.CapBuckets, Subject: "household_id", By: []sendgate.Field{"channel"}, Window: 24 * time.Hour, Buckets: 24, Remember: 48 * time.Hour, Limit: 9}
	daily := sendgate.Cap{Kind: sendgate.CapCalendar, Period: quiet.Day, Remember: 48 * time.Hour, Limit: 3, Kept: 1, KeptFor: sendgate.PriorityHigh}
	d := sendgate.Decision{
		NotificationID: check.NotificationID, User: check.User, Category: "marketing", Reason: sendgate.ReasonOptedIn,
		CapsAt: noon, Hold: 2 * time.Minute, Caps: []sendgate.CapState{
			{Cap: daily, SubjectID: string(check.User), Values: []string{}, Used: 1, Zone: "Europe/Berlin"},
			{Cap: household, SubjectID: "h", Values: []string{"push"}, Used: 4, At: noon.Add(time.Second)},
		},
	}
	l.Decided(&check, &d, sendgate.Reserve)
	denied := d
	denied.Verdict, denied.Reason = sendgate.Suppress, sendgate.ReasonFrequencyCap
	denied.Caps = []sendgate.CapState{{Cap: daily, SubjectID: string(check.User), Values: []string{}, Used: 2, Full: true, Zone: "Europe/Berlin"}}
	l.Decided(&check, &denied, sendgate.Reserve)
	uncapped := sendgate.Decision{NotificationID: "n2", User: "v", Reason: sendgate.ReasonUnverified, Uncapped: []sendgate.BoundCap{{Cap: household, SubjectID: "h", Values: []string{"push"}}}}
	l.Decided(&check, &uncapped, sendgate.Reserve)
	partly := uncapped
	partly.NotificationID, partly.Caps, partly.CapsAt = "n3", d.Caps[:1], noon
	l.Decided(&check, &partly, sendgate.Reserve)
	l.Settled(&sendgate.Settlement{
		Outcome: &sendgate.Outcome{Check: check, Fate: sendgate.Delivered, At: noon}, Status: sendgate.StatusSettled, At: noon.Add(time.Second),
		Caps: []sendgate.BoundCap{{Cap: daily, SubjectID: string(check.User), Values: []string{}, Zone: zone}},
	})
	// None of these is charged or denied by a cap.
	l.Decided(&check, &d, sendgate.Look)
	for _, other := range []sendgate.Decision{
		{User: "w"}, {User: "w", Verdict: sendgate.Suppress, Reason: sendgate.ReasonOptedOut, CapsAt: noon},
		{User: "w", Verdict: sendgate.Suppress, Reason: sendgate.ReasonNotTaken, CapsAt: noon, Caps: d.Caps},
	} {
		l.Decided(&check, &other, sendgate.Reserve)
	}
	l.StepTook(sendgate.StepCaps, 1, time.Second)
	l.ZoneFellBack()
	closeLog(t, l)

	at := noon.UnixMilli()
	day := decisionlog.Cap{Kind: "calendar", Period: "day", Remember: sendgate.Duration(48 * time.Hour), Zone: "Europe/Berlin", Limit: 3}
	lasting := decisionlog.Cap{
		Kind: "buckets", Subject: "household_id", By: []sendgate.Field{"channel"}, Window: sendgate.Duration(24 * time.Hour),
		Buckets: 24, Remember: sendgate.Duration(48 * time.Hour), Limit: 9, SubjectID: "h", Values: []string{"push"},
	}
	allowedDay, deniedDay, allowedLasting := day, day, lasting
	allowedDay.Kept, allowedDay.Used = 1, 1
	deniedDay.Kept, deniedDay.Used, deniedDay.Full = 1, 2, true
	allowedLasting.Used, allowedLasting.At = 4, at+1000
	first := decisionlog.Entry{
		V: 1, Kind: "decision", At: at, User: check.User, NotificationID: "n<1>", Channel: "push", Topic: "promotions", Category: "marketing",
		Verdict: "allow", Reason: "opted_in", Hold: sendgate.Duration(2 * time.Minute), Caps: []decisionlog.Cap{allowedDay, allowedLasting},
	}
	second := first
	second.Verdict, second.Reason, second.Caps = "suppress", "frequency_cap", []decisionlog.Cap{deniedDay}
	want := []*decisionlog.Entry{
		&first, &second,
		{V: 1, Kind: "uncapped", At: at, User: "v", NotificationID: "n2", Channel: "push", Topic: "promotions", Verdict: "allow", Reason: "unverified", Caps: []decisionlog.Cap{lasting}},
		{V: 1, Kind: "decision", At: at, User: "v", NotificationID: "n3", Channel: "push", Topic: "promotions", Verdict: "allow", Reason: "unverified", Caps: []decisionlog.Cap{allowedDay}},
		{V: 1, Kind: "uncapped", At: at, User: "v", NotificationID: "n3", Channel: "push", Topic: "promotions", Verdict: "allow", Reason: "unverified", Caps: []decisionlog.Cap{lasting}},
		{V: 1, Kind: "outcome", At: at + 1000, User: check.User, NotificationID: "n<1>", Channel: "push", Topic: "promotions", Outcome: "delivered", Happened: at, Status: "settled", Caps: []decisionlog.Cap{day}},
	}
	got, stats, err := readAll(t, decisionlog.ReadOptions{}, path)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || stats.Entries != 6 {
		t.Errorf("(-want +got):\n%s%v %+v", diff, err, stats)
	}
	if l.Written() != 6 || l.Dropped()+l.Failed() != 0 {
		t.Errorf("%d written, %d dropped, %d failed", l.Written(), l.Dropped(), l.Failed())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	decide(l, "late")
	if l.Dropped() != 1 {
		t.Error("what comes after the end is not counted as dropped")
	}
}

// TestASlowDiskHoldsUpNoCheck fills the queue behind a write that does not end.
func TestASlowDiskHoldsUpNoCheck(t *testing.T) {
	d := &disk{room: -1, gate: make(chan struct{}), waiting: make(chan struct{}, 1)}
	o := options("")
	o.Queue = 10
	l, err := decisionlog.OpenOn(o, func() (decisionlog.File, bool, error) { return d, false, nil })
	if err != nil {
		t.Fatal(err)
	}
	<-d.waiting // with its first line
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 100 {
				decide(l, fmt.Sprint(caller, "-", i))
			}
		})
	}
	callers.Wait()
	if l.Dropped() != 790 {
		t.Errorf("%d of 800 were dropped with room for 10", l.Dropped())
	}
	go func() {
		for range d.waiting {
		}
	}()
	close(d.gate)
	redistest.Until(t, "what was queued is written", func() bool { return l.Written() == 10 })
	decide(l, "after")
	closeLog(t, l)
	close(d.waiting)
	entries, stats, err := readAll(t, decisionlog.ReadOptions{}, write(t, "d", d.text()))
	if err != nil || len(entries) != 11 || stats.Lost != 790 || !d.synced || !d.closed {
		t.Errorf("%d entries, %d are said to be missing, %v; synced %t, closed %t", len(entries), stats.Lost, err, d.synced, d.closed)
	}
}

// TestAFullDisk lets a disk run full and be emptied, twice over: what is missing
// is counted and marked, and each spell is logged once.
func TestAFullDisk(t *testing.T) {
	var logged redistest.Output
	o := options("")
	o.Log = slog.New(slog.NewTextHandler(&logged, nil))
	d := &disk{room: -1}
	l, err := decisionlog.OpenOn(o, func() (decisionlog.File, bool, error) { return d, false, nil })
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	sent := int64(0)
	one := func(id string) {
		decide(l, id)
		sent++
		redistest.Until(t, "it is written or has failed", func() bool { return l.Written()+l.Failed() == sent })
	}
	for spell := range 2 {
		d.free(-1)
		one(fmt.Sprint("good", spell))
		names = append(names, fmt.Sprint("good", spell))
		d.free(20) // ends in the middle of a line
		one("torn")
		d.free(0)
		one("lost")
		d.free(-1)
		one(fmt.Sprint("again", spell))
		names = append(names, fmt.Sprint("again", spell))
	}
	closeLog(t, l)
	entries, stats, err := readAll(t, decisionlog.ReadOptions{}, write(t, "d", d.text()))
	if got := ids(entries); err != nil || got != strings.Join(names, " ") || stats.Lost != 4 || l.Failed() != 4 {
		t.Errorf("%s, %+v, %v, %d failed\n%s", got, stats, err, l.Failed(), d.text())
	}
	text := logged.String()
	if broke, again := strings.Count(text, "cannot be written"), strings.Count(text, "can be written again"); broke != 2 || again != 2 {
		t.Errorf("%d and %d messages of two spells:\n%s", broke, again, text)
	}
}

// TestReopen moves a log away while it is written on.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d.jsonl")
	l := open(t, options(path))
	var want []string
	for round := range 5 {
		for i := range 200 {
			decide(l, fmt.Sprint(round, "-", i))
			want = append(want, fmt.Sprint(round, "-", i))
		}
		if err := os.Rename(path, filepath.Join(dir, fmt.Sprint(round))); err != nil {
			t.Fatal(err)
		}
		l.Reopen()
		redistest.Until(t, "it is there again", func() bool { _, err := os.Stat(path); return err == nil })
	}
	// Where it cannot be opened, the old file is written on.
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	l.Reopen()
	decide(l, "last")
	closeLog(t, l)
	files, err := filepath.Glob(dir + ".away/*")
	if err != nil || len(files) != 6 {
		t.Fatalf("%v, %v", files, err)
	}
	entries, stats, err := readAll(t, decisionlog.ReadOptions{}, files...)
	seen := map[string]bool{}
	for _, e := range entries {
		seen[e.NotificationID] = true
	}
	if len(seen) != len(want)+1 || len(entries) != len(seen) || stats.Torn.Count+stats.Bad.Count > 0 || err != nil {
		t.Errorf("%d entries, %d different, of %d; %+v, %v", len(entries), len(seen), len(want)+1, stats, err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
}

// TestAGateThatWasKilled begins after a line that is torn.
func TestAGateThatWasKilled(t *testing.T) {
	path := write(t, "d", opened, line("a", 1), line("torn", 2)[:40])
	l := open(t, options(path))
	decide(l, "b")
	closeLog(t, l)
	l = open(t, options(path))
	decide(l, "c")
	closeLog(t, l)
	entries, stats, err := readAll(t, decisionlog.ReadOptions{}, path)
	if got := ids(entries); err != nil || got != "a b c" || stats.Torn.Count != 1 {
		t.Errorf("%s, %+v, %v", got, stats, err)
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("\n\n")) {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestOpenFails(t *testing.T) {
	if _, err := decisionlog.Open(options(filepath.Join(t.TempDir(), "no", "folder"))); err == nil {
		t.Error("a log in a folder that is not there was opened")
	}
}
