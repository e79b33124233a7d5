package oracle_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sendgate/sendgate/internal/oracle"
)

// sameDecision tells what is wrong with a decision, or nothing.
func sameDecision(c oracle.Check, got decision, want oracle.Decision) string {
	switch {
	case got.Error != nil:
		return "it was refused: " + got.Error.Code
	case got.NotificationID != c.NotificationID || got.User != c.User:
		return "it is of another check"
	case got.Verdict != want.Verdict || got.Reason != want.Reason || got.Category != want.Category:
		return "verdict, reason or category"
	case !got.DeliverAt.Equal(want.DeliverAt) || !got.RetryAt.Equal(want.RetryAt):
		return "deliver_at or retry_at"
	case !slices.Contains(want.Steps, got.Step):
		return "step"
	case got.Exact == nil || !*got.Exact || got.Degraded == nil || *got.Degraded:
		return "everything is up, and it must be exact and not degraded"
	}
	asked := want.Verdict == "allow" && want.Reason != "essential" || want.Reason == "frequency_cap"
	if asked || len(got.Caps) > 0 {
		return sameCaps(got.Caps, want.Caps)
	}
	return ""
}

func sameCaps(got []capUse, want []oracle.CapUse) string {
	var a, b []string
	for _, c := range want {
		room := ""
		if c.Used >= c.Limit && !c.Room.IsZero() {
			room = c.Room.Format(stamp)
		}
		a = append(a, fmt.Sprint(c.By, c.Window, c.Limit, c.Used, room))
	}
	for _, c := range got {
		window, _ := oracle.Length(c.Window)
		room := ""
		// What resets_at is of a cap that has room, nobody has promised.
		for _, w := range want {
			if slices.Equal(w.By, c.By) && w.Window == window && !w.Room.IsZero() && !c.ResetsAt.IsZero() {
				room = c.ResetsAt.Format(stamp)
			}
		}
		b = append(b, fmt.Sprint(c.By, window, c.Limit, c.Used, room))
	}
	sort.Strings(a)
	sort.Strings(b)
	if !slices.Equal(a, b) {
		return fmt.Sprintf("caps: got %v, want %v", b, a)
	}
	return ""
}

// wantDecision fails unless a decision is the predicted one.
func (w *world) wantDecision(c oracle.Check, got decision, want oracle.Decision) {
	w.t.Helper()
	if wrong := sameDecision(c, got, want); wrong != "" {
		w.fail("%s: want %s", wrong, show(want))
	}
	w.saw[want.Verdict+" "+want.Reason]++
	for name, at := range map[string]time.Time{"deliver_at": want.DeliverAt, "retry_at": want.RetryAt} {
		if !at.IsZero() {
			w.saw[name+" "+want.Reason]++
		}
	}
}

func show(d oracle.Decision) string {
	text := fmt.Sprintf("%s, %s of %s by %v", d.Verdict, d.Reason, d.Category, d.Steps)
	for name, at := range map[string]time.Time{"deliver_at": d.DeliverAt, "retry_at": d.RetryAt} {
		if !at.IsZero() {
			text += " " + name + " " + at.Format(stamp)
		}
	}
	return fmt.Sprintf("%s caps %v", text, d.Caps)
}

// wantRefusal fails unless an answer is a refusal like the predicted one. Of
// several faults, one that hides others may be all that is told.
func (w *world) wantRefusal(a answer, want *oracle.Refusal) {
	w.t.Helper()
	if a.status != want.Status {
		w.fail("want status %d for %v", want.Status, want.Codes)
	}
	w.saw["refused "+want.Codes[0]]++
	var p problem
	w.read(a, &p)
	if p.Status != a.status || p.Type == "" || p.Title == "" {
		w.fail("the problem is incomplete")
	}
	left := slices.Clone(want.Codes)
	for _, code := range p.codes() {
		i := slices.IndexFunc(left, func(one string) bool { return slices.Contains(strings.Split(one, "|"), code) })
		if i < 0 {
			w.fail("want the faults %v", want.Codes)
		}
		left = slices.Delete(left, i, i+1)
	}
}

// wantDocument fails unless an answer is a user's document.
func (w *world) wantDocument(a answer, user string) {
	w.t.Helper()
	if a.status != 200 {
		w.fail("want a document")
	}
	var d document
	w.read(a, &d)
	got, want := d.asOracle(), w.oracle.Document(user)
	if !reflect.DeepEqual(got, want) {
		w.fail("the document: want %s", text(want))
	}
	if etag := fmt.Sprintf("%q", fmt.Sprint(want.Revision)); a.etag != etag {
		w.fail("the ETag is %s, want %s", a.etag, etag)
	}
}

func text(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}
