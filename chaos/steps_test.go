package chaos_test

import (
	"bytes"
	"time"
)

// sent matches a piece of what a program sends by all of some texts in it.
func sent(texts ...string) func([]byte) bool {
	return func(data []byte) bool {
		for _, text := range texts {
			if !bytes.Contains(data, []byte(text)) {
				return false
			}
		}
		return true
	}
}

// step is something that a gate sends. With passes it is the answer that is
// held up.
type step struct {
	at      *proxy
	passes  bool
	matches func([]byte) bool
	what    string
}

// killAt kills the victim when it gets to a step, and loses what was held up.
// Nobody hurries to it any more then.
func (r *rig) killAt(s step) {
	sprung := s.at.holdAt(s.passes, s.matches)
	select {
	case <-sprung:
	case <-time.After(patience):
		r.t.Fatalf("a gate never gets to the step %q", s.what)
	}
	r.target.Store(-1)
	r.victim().kill()
	s.at.reset()
	s.at.heal()
	r.victim().start()
}

// killAtSteps kills a gate at every step of the write path. The sweep takes the
// same steps.
func killAtSteps(r *rig) {
	g := r.victim()
	put, announce, log := sent(".PutItem", tablePrefix+"-records"), sent("evalsha", "sendgate:changes"), sent(".PutItem", tablePrefix+"-changes")
	for _, s := range []step{
		{g.store, false, put, "before the record is stored"},
		{g.store, true, put, "when it is stored"},
		{g.redis, false, announce, "before it is announced"},
		{g.redis, true, announce, "when it is announced"},
		{g.store, false, log, "before the change is logged"},
		{g.store, true, log, "when it is logged"},
	} {
		r.target.Store(int32(g.index))
		r.killAt(s)
	}
}

// clearingTroubles are for gates whose changes are pending for a short time.
var clearingTroubles = []trouble{
	{name: "gate killed when it clears what was pending", bring: killAtClearing, touches: theVictim},
}

// killAtClearing kills a gate at the last step of the sweep: the record is
// stored without the changes that were pending, and so does not stand in the
// index of those any more.
func killAtClearing(r *rig) {
	clearing := func(data []byte) bool {
		// The table's name comes last, so that nothing is missing of the record.
		return sent(".PutItem", `"TableName":"`+tablePrefix+`-records"`)(data) && !bytes.Contains(data, []byte(`"since"`))
	}
	for range 2 * r.scale {
		for _, s := range []step{
			{r.victim().store, false, clearing, "before what was pending is cleared"},
			{r.victim().store, true, clearing, "when it is cleared"},
		} {
			r.killAt(s)
		}
	}
}
