package replay

import (
	"container/heap"
	"math"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/decisionlog"
)

// Options say how a Replay judges.
type Options struct {
	// Complete says that nothing was charged before the logs begin. Otherwise a
	// denial is only held against a cap once the logs go back for a whole window.
	Complete bool
	// Found is told of each verdict that was wrong, in the order of time for each
	// counter. It may be nil.
	Found func(Finding)
}

// Finding is a verdict that the exact count does not bear out.
type Finding struct {
	Over           bool // an allow beyond the limit; otherwise a denial although there was room
	At             time.Time
	User           sendgate.UserID
	NotificationID string
	Channel        string
	Cap            string // as Row names it, with the values it was keyed by
	Count          int    // slots that were taken, without this notification's
	Room           int    // that were open to it
}

// Replay is what logs have come to so far. It is for one goroutine.
type Replay struct {
	o       Options
	waiting events
	added   int64
	reached int64 // the time of the last event that was taken up
	first   int64 // of the first entry
	late    int64

	counters map[string]*counter
	people   map[sendgate.UserID]map[*counter]bool // where notifications of a user were charged
	swept    int                                   // counters that the last sweep has left
	rows     map[string]*Row
}

// New begins a Replay.
func New(o Options) *Replay {
	if o.Found == nil {
		o.Found = func(Finding) {}
	}
	return &Replay{
		o: o, reached: math.MinInt64, first: math.MaxInt64,
		counters: map[string]*counter{}, people: map[sendgate.UserID]map[*counter]bool{}, rows: map[string]*Row{},
	}
}

// Add takes an entry, and takes up what is of a time earlier than before.
func (r *Replay) Add(e *decisionlog.Entry, before int64) error {
	switch e.Kind {
	case decisionlog.KindUncapped:
		for i := range e.Caps {
			row, err := r.rowOf(&e.Caps[i])
			if err != nil {
				return err
			}
			row.Uncapped++
		}
		return nil
	case decisionlog.KindOutcome:
		r.push(event{at: e.At, entry: e})
	case decisionlog.KindDecision:
		for i := range e.Caps {
			at := e.At
			if e.Caps[i].At != 0 {
				at = e.Caps[i].At
			}
			r.push(event{at: at, entry: e, cap: &e.Caps[i]})
		}
	default:
		return nil
	}
	r.first = min(r.first, e.At)
	return r.take(before)
}

func (r *Replay) push(e event) {
	if r.added++; e.at < r.reached {
		r.late++
	}
	e.place = r.added
	heap.Push(&r.waiting, e)
}

// Finish takes up all that is left. Nothing may be added later.
func (r *Replay) Finish() error {
	if err := r.take(math.MaxInt64); err != nil {
		return err
	}
	for _, c := range r.counters {
		c.settleMoment()
	}
	return nil
}

// Late is how many events came too late to be put into their place.
func (r *Replay) Late() int64 { return r.late }

// Span is from when to when the logs go.
func (r *Replay) Span() (from, to time.Time) {
	if r.reached == math.MinInt64 {
		return from, to
	}
	return time.UnixMilli(r.first).UTC(), time.UnixMilli(r.reached).UTC()
}

func (r *Replay) take(before int64) error {
	for len(r.waiting) > 0 && r.waiting[0].at < before {
		e, _ := heap.Pop(&r.waiting).(event)
		r.reached = max(r.reached, e.at)
		if err := r.happen(e); err != nil {
			return err
		}
	}
	if len(r.counters) > 2*r.swept+1024 {
		r.sweep()
	}
	return nil
}

// happen has an event happen to the counters that it concerns.
func (r *Replay) happen(e event) error {
	if e.cap != nil {
		return r.decided(e)
	}
	report := reportOf(e.entry)
	named := map[*counter]*decisionlog.Cap{}
	for i := range e.entry.Caps {
		c, err := r.counterOf(e.entry.User, &e.entry.Caps[i])
		if err != nil {
			return err
		}
		named[c] = &e.entry.Caps[i]
	}
	for c := range r.people[e.entry.User] {
		own := report
		if own.named = named[c]; own.named != nil {
			c.latest = *own.named
		}
		m := c.at(e.at)
		m.reports = append(m.reports, own)
	}
	return nil
}

func (r *Replay) decided(e event) error {
	c, err := r.counterOf(e.entry.User, e.cap)
	if err != nil {
		return err
	}
	c.latest = *e.cap
	c.row.Decisions++
	switch m := c.at(e.at); {
	case e.entry.Allowed():
		c.row.Allows++
		m.takes = append(m.takes, e)
	case e.cap.Full:
		c.row.Denials++
		m.denials = append(m.denials, e)
	}
	return nil
}

// sweep forgets counters in which nothing is of use any more.
func (r *Replay) sweep() {
	for key, c := range r.counters {
		if c.moment.at >= r.reached {
			continue
		}
		if c.settleMoment(); c.idle(r.reached) {
			delete(r.counters, key)
			for user := range c.users {
				delete(r.people[user], c)
				if len(r.people[user]) == 0 {
					delete(r.people, user)
				}
			}
		}
	}
	r.swept = len(r.counters)
}

// event is a decision as one of its caps judged it, or an outcome.
type event struct {
	at    int64
	place int64
	entry *decisionlog.Entry
	cap   *decisionlog.Cap // nil of an outcome
}

// events are in the order of time, and outcomes after the decisions of the same
// millisecond.
type events []event

func (q events) Len() int { return len(q) }

func (q events) Less(i, j int) bool {
	a, b := &q[i], &q[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case (a.cap == nil) != (b.cap == nil):
		return b.cap == nil
	default:
		return a.place < b.place
	}
}

func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds an event.
func (q *events) Push(x any) { *q = append(*q, x.(event)) }

// Pop takes the last one.
func (q *events) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return last
}
