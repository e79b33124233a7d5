package storm_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sendgate/sendgate"
)

const (
	// lookEvery is how often a watcher looks, and so how exact its times are.
	lookEvery = time.Millisecond
	// lookAt is how many changes it looks at each time. Where more wait, it
	// takes turns: looking must not be what costs most.
	lookAt = 100
	// A gate that does not know a change for askAfter is asked whether it obeys
	// it all the same, by what Redis or the store say, at most once in askEvery
	// for the askAtOnce oldest of such changes that nobody can have followed by
	// another yet.
	askAfter  = 250 * time.Millisecond
	askEvery  = 100 * time.Millisecond
	askAtOnce = 100
	// sampled is one in how many changes that a gate knows the gate is asked of.
	sampled = 100
	// giveUpAfter is when a change is taken for lost.
	giveUpAfter = 30 * time.Second
)

// change is one that was acknowledged.
type change struct {
	user       string
	in         bool
	revision   int64
	due, acked time.Time
	obeyed     time.Time // by a gate, when asked; zero: not that anybody has seen
}

// watcher sees when one gate obeys what was acknowledged anywhere. It looks at
// the overlay first: what is exact there is obeyed without asking anybody,
// whatever the filter, Redis and the store say. Most checks obey earlier, since
// they read the record; whoever is known late is asked about.
type watcher struct {
	gate *gate
	stop chan struct{}
	done sync.WaitGroup

	mu   sync.Mutex
	told []change

	open      []change // told and not known yet
	turn      int      // of open, whom it looks at next
	askedAt   time.Time
	known     durations // from the acknowledgement until the gate knew it
	obeyed    durations // ... until it obeyed it, known or not
	fromDue   durations // from when it was due until it was obeyed
	late      int       // obeyed later than promised, or not at all
	lateOuts  int       // opt-outs among these
	forgotten int       // not known when the watcher gave up
	wrong     []string  // answers that are not by what the gate knows
}

// watch starts a watcher of each gate.
func (f *fleet) watch() []*watcher {
	watchers := make([]*watcher, len(f.gates))
	for i, g := range f.gates {
		w := &watcher{gate: g, stop: make(chan struct{})}
		w.done.Go(w.run)
		watchers[i] = w
	}
	return watchers
}

// tell tells all watchers of a change that was just acknowledged.
func tell(watchers []*watcher, c change) {
	for _, w := range watchers {
		w.mu.Lock()
		w.told = append(w.told, c)
		w.mu.Unlock()
	}
}

// finish has the watchers see everything that they were told of, unless they
// take it for lost, and stops them.
func finish(watchers []*watcher) {
	for _, w := range watchers {
		close(w.stop)
	}
	for _, w := range watchers {
		w.done.Wait()
	}
}

func (w *watcher) run() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ending := false; ; <-tick.C {
		w.mu.Lock()
		w.open = append(w.open, w.told...)
		w.told = nil
		w.mu.Unlock()
		w.look()
		if time.Since(w.askedAt) >= askEvery {
			w.ask()
		}
		if ending && len(w.open) == 0 {
			return
		}
		select {
		case <-w.stop:
			ending = true
		default:
		}
	}
}

// look looks at some of what is open, in turns.
func (w *watcher) look() {
	for range min(lookAt, len(w.open)) {
		if w.turn >= len(w.open) {
			w.turn = 0
		}
		c := w.open[w.turn]
		consent, exact, _ := w.gate.Overlay().Consent(sendgate.UserID(c.user))
		now := time.Now()
		known := exact && consent.Revision >= c.revision
		if !known && now.Sub(c.acked) < giveUpAfter {
			w.turn++
			continue
		}
		w.note(c, known, now)
		w.open[w.turn] = w.open[len(w.open)-1]
		w.open = w.open[:len(w.open)-1]
	}
}

// note notes what came of a change. Of one in a hundred the gate's own answer
// is held against it.
func (w *watcher) note(c change, known bool, now time.Time) {
	if known {
		w.known = append(w.known, now.Sub(c.acked))
		if len(w.known)%sampled == 0 && w.answers([]change{c})[0] == disobeys {
			w.wrong = append(w.wrong, fmt.Sprintf("%s was acknowledged to be in: %t (revision %d), and %s later a gate that knew it did not answer by it",
				c.user, c.in, c.revision, time.Since(c.acked)))
		}
	} else {
		w.forgotten++
	}
	if c.obeyed.IsZero() {
		c.obeyed = now
	}
	took := c.obeyed.Sub(c.acked)
	w.obeyed, w.fromDue = append(w.obeyed, took), append(w.fromDue, c.obeyed.Sub(c.due))
	if took > promised {
		w.late++
		if !c.in {
			w.lateOuts++
		}
	}
}

// ask asks the gate about changes that it should have known for a while.
func (w *watcher) ask() {
	var at []int // of open
	now := time.Now()
	for i, c := range w.open {
		if age := now.Sub(c.acked); c.obeyed.IsZero() && age > askAfter && age < restFor {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return
	}
	slices.SortFunc(at, func(i, j int) int { return w.open[i].acked.Compare(w.open[j].acked) })
	at = at[:min(askAtOnce, len(at))]
	asked := make([]change, len(at))
	for i := range at {
		asked[i] = w.open[at[i]]
	}
	w.askedAt = now
	for i, o := range w.answers(asked) {
		if o == obeys {
			w.open[at[i]].obeyed = time.Now()
		}
	}
}

// outcome is what an answer says of a change.
type outcome int

const (
	unsure outcome = iota // there may have been another change since
	obeys
	disobeys
)

// answers asks the gate about the users of changes.
func (w *watcher) answers(changes []change) []outcome {
	outcomes, users := make([]outcome, len(changes)), make([]string, len(changes))
	for i, c := range changes {
		users[i] = c.user
	}
	answers, err := w.gate.look(users)
	if err != nil {
		w.wrong = append(w.wrong, err.Error())
		return outcomes
	}
	for i, c := range changes {
		switch {
		case time.Since(c.acked) >= restFor:
		case answers[i].optedOut() == c.in:
			outcomes[i] = disobeys
		default:
			outcomes[i] = obeys
		}
	}
	return outcomes
}
