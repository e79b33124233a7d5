package decisionlog

import (
	"time"

	"github.com/sendgate/sendgate"
)

// Decided writes down a decision that caps have charged or denied, and what caps
// an allow went past that could not be judged. It is told of all others too.
func (l *Log) Decided(c *sendgate.Check, d *sendgate.Decision, mode sendgate.Mode) {
	if mode != sendgate.Reserve {
		return
	}
	allowed := d.Verdict == sendgate.Allow
	if len(d.Caps) > 0 && !d.CapsAt.IsZero() && (allowed || d.Reason == sendgate.ReasonFrequencyCap) {
		e := entryOf(c, d, KindDecision)
		e.At, e.Hold = d.CapsAt.UnixMilli(), sendgate.Duration(d.Hold)
		for i := range d.Caps {
			e.Caps = append(e.Caps, judged(&d.Caps[i], c.Priority))
		}
		l.put(e)
	}
	if allowed && len(d.Uncapped) > 0 {
		e := entryOf(c, d, KindUncapped)
		e.At = l.now().UnixMilli()
		for i := range d.Uncapped {
			e.Caps = append(e.Caps, bound(&d.Uncapped[i]))
		}
		l.put(e)
	}
}

func entryOf(c *sendgate.Check, d *sendgate.Decision, kind Kind) *Entry {
	return &Entry{
		V: Version, Kind: kind, User: d.User, NotificationID: d.NotificationID, Channel: c.Channel, Topic: c.Topic,
		Category: d.Category, Verdict: d.Verdict.String(), Reason: d.Reason.String(),
	}
}

// Settled writes down what became of a notification.
func (l *Log) Settled(s *sendgate.Settlement) {
	o := s.Outcome
	e := &Entry{
		V: Version, Kind: KindOutcome, At: s.At.UnixMilli(), User: o.Check.User, NotificationID: o.Check.NotificationID,
		Channel: o.Check.Channel, Topic: o.Check.Topic, Outcome: o.Fate.String(), Status: s.Status.String(),
	}
	if !o.At.IsZero() {
		e.Happened = max(1, o.At.UnixMilli())
	}
	for i := range s.Caps {
		e.Caps = append(e.Caps, bound(&s.Caps[i]))
	}
	l.put(e)
}

// StepTook is of no interest here.
func (*Log) StepTook(sendgate.Step, int, time.Duration) {}

// ZoneFellBack is of no interest here.
func (*Log) ZoneFellBack() {}

func capOf(c *sendgate.Cap) Cap {
	own := Cap{Kind: c.Kind.String(), Subject: c.Subject, By: c.By, Limit: c.Limit}
	if c.Kind == sendgate.CapCalendar {
		own.Period = c.Period.String()
	} else {
		own.Window = sendgate.Duration(c.Window)
	}
	if c.Kind != sendgate.CapRolling {
		own.Buckets, own.Remember = c.Buckets, sendgate.Duration(c.Remember)
	}
	return own
}

// bound tells of a cap that was not judged.
func bound(b *sendgate.BoundCap) Cap {
	c := capOf(&b.Cap)
	c.of(b.SubjectID, b.Values)
	if b.Kind == sendgate.CapCalendar {
		c.Zone = b.Zone.Name()
	}
	return c
}

// of says whose notifications a cap counts.
func (c *Cap) of(subjectID string, values []string) {
	c.Values = values
	if c.Subject != "" {
		c.SubjectID = subjectID
	}
}

func judged(s *sendgate.CapState, priority sendgate.Priority) Cap {
	c := capOf(&s.Cap)
	c.of(s.SubjectID, s.Values)
	c.Zone, c.Used, c.Full = s.Zone, s.Used, s.Full
	c.Kept = c.Limit - s.Cap.Room(priority)
	if !s.At.IsZero() {
		c.At = s.At.UnixMilli()
	}
	return c
}
