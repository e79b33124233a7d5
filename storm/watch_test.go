package storm_test

import (
	"fmt"
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
	// askOf is one in how many changes that a gate knows the gate is asked of.
	askOf = 100
)

// change is one that was acknowledged.
type change struct {
	user       string
	in         bool
	revision   int64
	due, acked time.Time
}

// watcher sees when one gate obeys what was acknowledged anywhere. It asks the
// overlay: what is exact there is obeyed without asking anybody, whatever the
// filter, Redis and the store say. Most checks obey earlier, since they read
// the record.
type watcher struct {
	gate *gate
	stop chan struct{}
	done sync.WaitGroup

	mu   sync.Mutex
	told []change

	open     []change // told and not known yet
	turn     int      // of open, whom it looks at next
	sinceAck durations
	sinceDue durations
	late     int      // known later than promised, or not at all
	wrong    []string // answers that are not by what the gate knows
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

// finish has the watchers see everything that they were told of, as long as it
// is not too late for it, and stops them.
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
	for ending := false; ; {
		w.mu.Lock()
		w.open = append(w.open, w.told...)
		w.told = nil
		w.mu.Unlock()
		w.look()
		if ending && len(w.open) == 0 {
			return
		}
		select {
		case <-w.stop:
			ending = true
		default:
		}
		<-tick.C
	}
}

// giveUpAfter is when a watcher takes a change for lost.
const giveUpAfter = 2 * promisedInStorm

func (w *watcher) look() {
	for range min(lookAt, len(w.open)) {
		if w.turn >= len(w.open) {
			w.turn = 0
		}
		c := w.open[w.turn]
		known, exact, _ := w.gate.Overlay().Consent(sendgate.UserID(c.user))
		now := time.Now()
		obeyed := exact && known.Revision >= c.revision
		if !obeyed && now.Sub(c.acked) < giveUpAfter {
			w.turn++
			continue
		}
		w.note(c, now)
		if obeyed && len(w.sinceAck)%askOf == 0 {
			w.ask(c)
		}
		w.open[w.turn] = w.open[len(w.open)-1]
		w.open = w.open[:len(w.open)-1]
	}
}

func (w *watcher) note(c change, now time.Time) {
	sinceAck := now.Sub(c.acked)
	w.sinceAck, w.sinceDue = append(w.sinceAck, sinceAck), append(w.sinceDue, now.Sub(c.due))
	if sinceAck > promised {
		w.late++
	}
}

// ask holds the gate's own answer against a change that it knows, unless there
// has been another since.
func (w *watcher) ask(c change) {
	answers, err := w.gate.look([]string{c.user})
	known, _, _ := w.gate.Overlay().Consent(sendgate.UserID(c.user))
	switch {
	case err != nil:
		w.wrong = append(w.wrong, err.Error())
	case known.Revision == c.revision && answers[0].optedOut() == c.in:
		w.wrong = append(w.wrong, fmt.Sprintf("%+v is answered by %+v", c, answers[0]))
	}
}
