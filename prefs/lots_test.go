package prefs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// worker does lots, each when it is told to.
type worker struct {
	mu    sync.Mutex
	lots  [][]Reading
	proud chan struct{} // one for each lot that may end
}

func (w *worker) do(readings []Reading) []error {
	w.mu.Lock()
	w.lots = append(w.lots, readings)
	w.mu.Unlock()
	<-w.proud
	errs := make([]error, len(readings))
	for i, r := range readings {
		errs[i] = fmt.Errorf("of %d", r.Made)
	}
	return errs
}

func (w *worker) sizes() (sizes []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, lot := range w.lots {
		sizes = append(sizes, len(lot))
	}
	return sizes
}

// TestLots has callers come while two lots are being done: they form the next
// ones, and each gets the answer to its own reading.
func TestLots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{proud: make(chan struct{}, 100)}
		l := newLots(10, 2, 1000, w.do)
		var callers sync.WaitGroup
		call := func(i int) {
			callers.Go(func() {
				if err := l.join(t.Context(), "", Reading{Made: int64(i)}); err == nil || err.Error() != fmt.Sprintf("of %d", i) {
					t.Errorf("the answer to %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		for i := range 27 {
			call(i)
		}
		if got := fmt.Sprint(w.sizes()); got != "[1 1]" {
			t.Errorf("lots being done: %s", got)
		}
		for range 100 {
			w.proud <- struct{}{}
		}
		callers.Wait()
		if got := fmt.Sprint(w.sizes()); got != "[1 1 10 10 5]" {
			t.Errorf("lots: %s", got)
		}
		call(28)
		l.close()
		if err := l.join(t.Context(), "", Reading{}); !errors.Is(err, errCarrierClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestLotsAreBounded has more callers than may wait, and some who give up: what
// they wanted is done yet.
func TestLotsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{proud: make(chan struct{}, 100)}
		l := newLots(10, 1, 15, w.do)
		var callers sync.WaitGroup
		for range 16 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := l.join(ctx, "", Reading{}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("who gave up is told: %v", err)
				}
			})
			synctest.Wait()
		}
		if err := l.join(t.Context(), "", Reading{}); !errors.Is(err, errTooManyWait) {
			t.Errorf("one too many: %v", err)
		}
		callers.Wait()
		for range 100 {
			w.proud <- struct{}{}
		}
		synctest.Wait()
		if got := fmt.Sprint(w.sizes()); got != "[1 10 5]" {
			t.Errorf("lots: %s", got)
		}
		l.close()
	})
}

// TestALotThatHangs has the lots of one kind not end: they hold up nobody else's.
func TestALotThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{proud: make(chan struct{}, 100)}
		l := newLots(10, 2, 15, func(readings []Reading) []error {
			if readings[0].Made > 0 {
				return w.do(readings)
			}
			return make([]error, len(readings))
		})
		var callers sync.WaitGroup
		for range 17 {
			callers.Go(func() {
				if err := l.join(t.Context(), "hangs", Reading{Made: 1}); err == nil {
					t.Error("no answer")
				}
			})
			synctest.Wait()
		}
		if err := l.join(t.Context(), "hangs", Reading{Made: 1}); !errors.Is(err, errTooManyWait) {
			t.Errorf("one too many: %v", err)
		}
		for range 100 {
			if err := l.join(t.Context(), "well", Reading{}); err != nil {
				t.Errorf("beside what hangs: %v", err)
			}
		}
		for range 100 {
			w.proud <- struct{}{}
		}
		callers.Wait()
		l.close()
		if len(l.kinds) != 0 {
			t.Errorf("%d kinds are kept with nothing to do", len(l.kinds))
		}
	})
}
