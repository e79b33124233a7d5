package client

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/sendgate/sendgate"
)

// item is one check and how it is written.
type item struct {
	check *sendgate.Check
	body  []byte
}

// waiter is a check in the line, and who waits for its answer.
type waiter struct {
	item
	until  time.Time
	done   chan answer // of one
	place  *list.Element
	joined bool // it is in a request
}

// answer is what came of one check: the gate's result, or why there is none.
type answer struct {
	Result
	fault error
}

// line collects checks while requests are under way, and sends them together. A
// check without company is sent at once.
type line struct {
	send     func(ctx context.Context, items []item) []answer
	down     func() bool // no gate is asked at present, but for probes
	requests int         // at once, at the most
	size     int         // checks of one request, at the most
	bound    int         // checks that wait, at the most

	mu      sync.Mutex
	waiting list.List // of *waiter
	busy    int       // requests
	running sync.WaitGroup
}

// ask has a check sent, and waits for the answer or the end of the context,
// which has a deadline.
func (l *line) ask(ctx context.Context, i item) answer {
	w := &waiter{item: i, done: make(chan answer, 1)}
	w.until, _ = ctx.Deadline()
	if err := l.enter(w); err != nil {
		return answer{fault: err}
	}
	select {
	case a := <-w.done:
		return a
	case <-ctx.Done():
	}
	l.leave(w)
	select {
	case a := <-w.done:
		return a
	default:
		return answer{fault: ctx.Err()}
	}
}

// enter takes a place in the line. Where all requests that may be under way are,
// and all gates are down, nobody waits for the probe that is among them.
func (l *line) enter(w *waiter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch full := l.busy == l.requests; {
	case l.waiting.Len() >= l.bound:
		return ErrBusy
	case full && l.down():
		return ErrTripped
	case !full:
		l.busy++
		l.running.Go(l.work)
	}
	w.place = l.waiting.PushBack(w)
	return nil
}

// leave gives the place up. A check that is in a request stays in it.
func (l *line) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.joined {
		l.waiting.Remove(w.place)
	}
}

// work sends requests until nobody waits.
func (l *line) work() {
	for batch := l.next(); batch != nil; batch = l.next() {
		l.sendOne(batch)
	}
}

// next takes from the line what one request carries: one check alone where it
// may be a probe.
func (l *line) next() (batch []*waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most, bytes := l.size, 0
	if l.waiting.Len() > 1 && l.down() {
		most = 1
	}
	for e := l.waiting.Front(); e != nil && len(batch) < most; e = l.waiting.Front() {
		w := e.Value.(*waiter)
		if bytes += len(w.body); bytes > maxBodyBytes {
			break
		}
		l.waiting.Remove(e)
		w.joined = true
		batch = append(batch, w)
	}
	if batch == nil {
		l.busy--
	}
	return batch
}

// sendOne has until the last of the batch would have given up.
func (l *line) sendOne(batch []*waiter) {
	items := make([]item, len(batch))
	var until time.Time
	for i, w := range batch {
		items[i] = w.item
		if w.until.After(until) {
			until = w.until
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	for i, a := range l.send(ctx, items) {
		batch[i].done <- a
	}
}

// wait returns once no request is under way. Nobody may enter any more.
func (l *line) wait() { l.running.Wait() }
