package decisionlog

import (
	"errors"
	"fmt"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/quiet"
)

// Version is the form that is written, and the only one that is read.
const Version = 1

// Kind says what an Entry tells of.
type Kind string

// The kinds.
const (
	KindDecision Kind = "decision" // an allow that was charged, or a denial by a full cap
	KindUncapped Kind = "uncapped" // an allow, and those of its caps that could not be judged
	KindOutcome  Kind = "outcome"  // what became of a notification
	KindOpen     Kind = "open"     // a gate has opened the file: what stands before may be torn
	KindGap      Kind = "gap"      // entries are missing here
)

// Entry is one line of a log. Instants are milliseconds since 1970, those of
// decisions and outcomes by the clock of the caps, all others by the gate's.
type Entry struct {
	V              int               `json:"v"`
	Kind           Kind              `json:"kind"`
	At             int64             `json:"at"`
	User           sendgate.UserID   `json:"user,omitempty"`
	NotificationID string            `json:"notification_id,omitempty"`
	Channel        string            `json:"channel,omitempty"` // of an outcome, empty: all
	Topic          string            `json:"topic,omitempty"`
	Category       string            `json:"category,omitempty"`
	Verdict        string            `json:"verdict,omitempty"`
	Reason         string            `json:"reason,omitempty"`
	Hold           sendgate.Duration `json:"hold,omitempty"` // after which what was charged lapses unless delivery is reported
	Caps           []Cap             `json:"caps,omitempty"` // that a decision was judged by, or an outcome names

	Outcome  string `json:"outcome,omitempty"`  // delivered, failed or dropped
	Happened int64  `json:"happened,omitempty"` // when, as it was reported; 0: at At
	Status   string `json:"status,omitempty"`   // what the outcome led to

	Lost int64 `json:"lost,omitempty"` // of a gap: how many entries are missing
}

// Cap is one cap as an entry tells of it. Window, Buckets, Remember, Period and
// Zone are those of its kind.
type Cap struct {
	Kind      string            `json:"kind"`
	Subject   sendgate.Field    `json:"subject,omitempty"` // empty: the user
	SubjectID string            `json:"subject_id,omitempty"`
	By        []sendgate.Field  `json:"by,omitempty"`
	Values    []string          `json:"values,omitempty"` // of By
	Window    sendgate.Duration `json:"window,omitempty"`
	Buckets   int               `json:"buckets,omitempty"`
	Remember  sendgate.Duration `json:"remember,omitempty"`
	Period    string            `json:"period,omitempty"`
	Zone      string            `json:"zone,omitempty"`
	Limit     int               `json:"limit"`
	Kept      int               `json:"kept,omitempty"` // slots that were not open to the check, for its priority
	Used      int               `json:"used,omitempty"` // as the caps counted it
	Full      bool              `json:"full,omitempty"` // it had no room for the check
	At        int64             `json:"at,omitempty"`   // when it was judged, if not at the entry's At
}

// Allowed tells of a decision whether it was an allow.
func (e *Entry) Allowed() bool { return e.Verdict == sendgate.Allow.String() }

// latest is the end of the year 9999.
const latest = 253_402_300_799_999

// check says what is wrong with an entry that was read.
func (e *Entry) check() error {
	switch {
	case e.V != Version:
		return fmt.Errorf("version %d is not known", e.V)
	case e.At < 0 || e.At > latest || e.Happened < 0 || e.Happened > latest:
		return errors.New("an instant is out of range")
	case e.Hold < 0 || time.Duration(e.Hold) > sendgate.MaxHold || e.Lost < 0:
		return errors.New("a number is out of range")
	}
	switch e.Kind {
	case KindOpen, KindGap:
		return nil
	case KindDecision, KindUncapped, KindOutcome:
	default:
		return fmt.Errorf("kind %q is not known", sendgate.Clip(string(e.Kind)))
	}
	if e.User == "" || e.NotificationID == "" {
		return errors.New("it names no user or no notification")
	}
	if e.Kind == KindOutcome {
		if _, ok := sendgate.ParseFate(e.Outcome); !ok {
			return fmt.Errorf("outcome %q is not known", sendgate.Clip(e.Outcome))
		}
	} else if e.Verdict != "allow" && e.Verdict != "suppress" && e.Verdict != "defer" {
		return fmt.Errorf("verdict %q is not known", sendgate.Clip(e.Verdict))
	}
	for i := range e.Caps {
		if err := e.Caps[i].check(); err != nil {
			return fmt.Errorf("cap %d: %w", i+1, err)
		}
	}
	return nil
}

// check says what is wrong with a cap.
func (c *Cap) check() error {
	switch {
	case len(c.By) != len(c.Values):
		return fmt.Errorf("%d fields with %d values", len(c.By), len(c.Values))
	case c.Subject != "" && c.SubjectID == "":
		return errors.New("a subject without an id")
	case c.Limit < 0 || c.Limit > sendgate.MaxCapLimit || c.Kept < 0 || c.At < 0 || c.At > latest:
		return errors.New("a number is out of range")
	}
	_, err := c.Cap()
	return err
}

var periods = map[string]quiet.Period{"day": quiet.Day, "week": quiet.Week, "month": quiet.Month}

// Cap is the cap as the catalog has it, without what an entry does not tell.
func (c *Cap) Cap() (sendgate.Cap, error) {
	known := sendgate.Cap{
		Subject: c.Subject, By: c.By, Limit: c.Limit,
		Window: time.Duration(c.Window), Buckets: c.Buckets, Remember: time.Duration(c.Remember),
	}
	remembers := known.Remember > 0 && known.Remember <= sendgate.MaxRemember
	ok := known.Window >= time.Millisecond && known.Window <= sendgate.MaxCapWindow
	switch c.Kind {
	case sendgate.CapRolling.String():
	case sendgate.CapBuckets.String():
		known.Kind = sendgate.CapBuckets
		ok = ok && c.Buckets >= 1 && c.Buckets <= sendgate.MaxBuckets && known.Window%(time.Duration(c.Buckets)*time.Millisecond) == 0 && remembers
	case sendgate.CapCalendar.String():
		known.Kind, known.Period = sendgate.CapCalendar, periods[c.Period]
		ok = known.Period != 0 && remembers
	default:
		return known, fmt.Errorf("kind %q is not known", sendgate.Clip(c.Kind))
	}
	if !ok {
		return known, errors.New("a window that no cap can have")
	}
	return known, nil
}

// Bound is the cap with whose notifications it counts, of a user's.
func (c *Cap) Bound(user sendgate.UserID) (sendgate.BoundCap, error) {
	own, err := c.Cap()
	b := sendgate.BoundCap{Cap: own, SubjectID: c.SubjectID, Values: c.Values, Room: c.Room()}
	if c.Subject == "" {
		b.SubjectID = string(user)
	}
	if err == nil && own.Kind == sendgate.CapCalendar && c.Zone != "" {
		b.Zone, err = quiet.LoadZone(c.Zone)
	}
	return b, err
}

// Room is how many slots were open to the check.
func (c *Cap) Room() int { return max(0, c.Limit-c.Kept) }
