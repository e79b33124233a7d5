package decisionlog

import (
	"time"

	"github.com/sendgate/sendgate"
)

// Decided writes down a decision that caps have charged or denied, and an allow
// that no cap could judge. It is told of all others too.
func (l *Log) Decided(c *sendgate.Check, d *sendgate.Decision, mode sendgate.Mode) {
	if mode != sendgate.Reserve {
		return
	}
	allowed := d.Verdict == sendgate.Allow
	e := &Entry{
		V: Version, User: d.User, NotificationID: d.NotificationID, Channel: c.Channel, Topic: c.Topic,
		Category: d.Category, Verdict: d.Verdict.String(), Reason: d.Reason.String(),
	}
	switch {
	case len(d.Caps) > 0 && !d.CapsAt.IsZero() && (allowed || d.Reason == sendgate.ReasonFrequencyCap):
		e.Kind, e.At, e.Hold = KindDecision, d.CapsAt.UnixMilli(), sendgate.Duration(d.Hold)
		e.Caps = make([]Cap, len(d.Caps))
		for i := range d.Caps {
			e.Caps[i] = judged(&d.Caps[i], c.Priority)
		}
	case allowed && len(d.Uncapped) > 0:
		e.Kind, e.At = KindUncapped, l.now().UnixMilli()
		e.Caps = make([]Cap, len(d.Uncapped))
		for i := range d.Uncapped {
			e.Caps[i] = capOf(&d.Uncapped[i])
		}
	default:
		return
	}
	l.put(e)
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
		b := &s.Caps[i]
		c := capOf(&b.Cap)
		c.of(b.SubjectID, b.Values)
		if b.Kind == sendgate.CapCalendar {
			c.Zone = b.Zone.Name()
		}
		e.Caps = append(e.Caps, c)
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
