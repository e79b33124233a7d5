package prefs

import (
	"context"
	"errors"
	"sync"
)

var (
	errTooManyWait   = errors.New("too many changes wait to be carried on")
	errCarrierClosed = errors.New("the gate is shutting down")
)

// lots gathers what callers want done while earlier lots are being done, and
// does it together. A caller without company is served at once.
type lots struct {
	do     func([]Reading) []error
	size   int // readings in one lot, at the most
	atOnce int // lots, at the most
	queue  int // readings that wait, at the most

	mu      sync.Mutex
	waiting []*lot
	length  int // readings in waiting
	busy    int // lots being done
	closed  bool
	running sync.WaitGroup
}

type lot struct {
	readings []Reading
	errs     []error
	done     chan struct{} // closed once errs are there
}

func newLots(size, atOnce, queue int, do func([]Reading) []error) *lots {
	return &lots{do: do, size: size, atOnce: atOnce, queue: queue}
}

// join has a reading done with others, and waits for that.
func (l *lots) join(ctx context.Context, r Reading) error {
	mine, place, err := l.enter(r)
	if err != nil {
		return err
	}
	select {
	case <-mine.done:
		return mine.errs[place]
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lots) enter(r Reading) (mine *lot, place int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, 0, errCarrierClosed
	case l.length == l.queue:
		return nil, 0, errTooManyWait
	}
	if n := len(l.waiting); n > 0 && len(l.waiting[n-1].readings) < l.size {
		mine = l.waiting[n-1]
	} else {
		mine = &lot{done: make(chan struct{})}
		l.waiting = append(l.waiting, mine)
	}
	mine.readings = append(mine.readings, r)
	l.length++
	if l.busy < l.atOnce {
		l.busy++
		l.running.Go(l.work)
	}
	return mine, len(mine.readings) - 1, nil
}

// work does lots until none waits.
func (l *lots) work() {
	for next := l.next(); next != nil; next = l.next() {
		next.errs = l.do(next.readings)
		close(next.done)
	}
}

func (l *lots) next() *lot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.busy--
		return nil
	}
	next := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.length -= len(next.readings)
	return next
}

// close waits until no lot is being done, and refuses what comes afterwards.
func (l *lots) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
}
