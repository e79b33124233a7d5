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

// lots gathers what callers want done while earlier lots of the same kind are
// being done, and does it together. A caller without company is served at once.
type lots struct {
	do     func([]Reading) []error
	size   int // readings in one lot, at the most
	atOnce int // lots of a kind, at the most
	queue  int // readings of a kind that wait, at the most

	mu      sync.Mutex
	kinds   map[string]*kind // of those that have something to do
	closed  bool
	running sync.WaitGroup
}

// kind is the lots of one kind.
type kind struct {
	waiting []*lot
	length  int // readings in waiting
	busy    int // lots being done
}

type lot struct {
	readings []Reading
	errs     []error
	done     chan struct{} // closed once errs are there
}

func newLots(size, atOnce, queue int, do func([]Reading) []error) *lots {
	return &lots{do: do, size: size, atOnce: atOnce, queue: queue, kinds: map[string]*kind{}}
}

// join has a reading done with others of a kind, and waits for that.
func (l *lots) join(ctx context.Context, of string, r Reading) error {
	mine, place, err := l.enter(of, r)
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

func (l *lots) enter(of string, r Reading) (mine *lot, place int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, 0, errCarrierClosed
	}
	k := l.kinds[of]
	if k == nil {
		k = &kind{}
		l.kinds[of] = k
	}
	if k.length == l.queue {
		return nil, 0, errTooManyWait
	}
	if n := len(k.waiting); n > 0 && len(k.waiting[n-1].readings) < l.size {
		mine = k.waiting[n-1]
	} else {
		mine = &lot{done: make(chan struct{})}
		k.waiting = append(k.waiting, mine)
	}
	mine.readings = append(mine.readings, r)
	k.length++
	if k.busy < l.atOnce {
		k.busy++
		l.running.Go(func() { l.work(of, k) })
	}
	return mine, len(mine.readings) - 1, nil
}

// work does lots of a kind until none waits.
func (l *lots) work(of string, k *kind) {
	for next := l.next(of, k); next != nil; next = l.next(of, k) {
		next.errs = l.do(next.readings)
		close(next.done)
	}
}

func (l *lots) next(of string, k *kind) *lot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(k.waiting) == 0 {
		if k.busy--; k.busy == 0 {
			delete(l.kinds, of)
		}
		return nil
	}
	next := k.waiting[0]
	k.waiting = k.waiting[1:]
	k.length -= len(next.readings)
	return next
}

// close waits until no lot is being done, and refuses what comes afterwards.
func (l *lots) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
}
