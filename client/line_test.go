package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendgate/sendgate"
)

// rig is a line, the sizes of its requests, and how long each takes.
type rig struct {
	*line
	mu    sync.Mutex
	sizes []int
	took  time.Duration
}

func newRig(took time.Duration) *rig {
	r := &rig{took: took}
	r.line = &line{requests: 1, size: 10, bound: 20, down: func() bool { return false }, send: r.answer}
	return r
}

// answer tells each check its own id.
func (r *rig) answer(ctx context.Context, items []item) []answer {
	r.mu.Lock()
	r.sizes = append(r.sizes, len(items))
	r.mu.Unlock()
	answers := make([]answer, len(items))
	select {
	case <-time.After(r.took):
		for i := range items {
			answers[i].Decision.NotificationID = items[i].check.NotificationID
		}
	case <-ctx.Done():
		for i := range items {
			answers[i].fault = ctx.Err()
		}
	}
	return answers
}

// ask asks within a second.
func (r *rig) ask(ctx context.Context, id string, body int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	a := r.line.ask(ctx, item{&sendgate.Check{NotificationID: id}, bytes.Repeat([]byte("x"), body)})
	if a.fault == nil && a.Decision.NotificationID != id {
		return fmt.Errorf("%s was told of %s", id, a.Decision.NotificationID)
	}
	return a.fault
}

// many asks so often at once, and waits until all are in the line.
func (r *rig) many(t *testing.T, wg *sync.WaitGroup, n, body int, want error) {
	t.Helper()
	for i := range n {
		wg.Go(func() {
			if err := r.ask(t.Context(), fmt.Sprint(i), body); !errors.Is(err, want) {
				t.Errorf("%v, not %v", err, want)
			}
		})
	}
	synctest.Wait()
}

func (r *rig) sent(t *testing.T, want ...int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if fmt.Sprint(r.sizes) != fmt.Sprint(want) {
		t.Errorf("requests of %v checks, not %v", r.sizes, want)
	}
}

func TestWhatIsAloneIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRig(time.Millisecond), time.Now()
		for i := range 3 {
			if err := r.ask(t.Context(), fmt.Sprint(i), 1); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != 3*time.Millisecond {
			t.Errorf("took %v", took)
		}
		r.sent(t, 1, 1, 1)
		r.wait()
	})
}

func TestOthersAreCollectedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(time.Millisecond)
		var wg sync.WaitGroup
		r.many(t, &wg, 1, 1, nil)
		r.many(t, &wg, 13, 1, nil)
		wg.Wait()
		r.sent(t, 1, 10, 3)
		r.wait()
	})
}

func TestALargeBatchIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(time.Millisecond)
		var wg sync.WaitGroup
		r.many(t, &wg, 1, 1, nil)
		r.many(t, &wg, 7, maxBodyBytes/3, nil)
		wg.Wait()
		r.sent(t, 1, 3, 3, 1)
		r.wait()
	})
}

func TestSeveralRequestsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(time.Millisecond)
		r.requests = 3
		var wg sync.WaitGroup
		for range 3 {
			r.many(t, &wg, 1, 1, nil)
		}
		r.many(t, &wg, 4, 1, nil)
		wg.Wait()
		r.sent(t, 1, 1, 1, 4)
		r.wait()
	})
}

func TestWhoComesTooLateIsTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(time.Millisecond)
		var first, rest sync.WaitGroup
		r.many(t, &first, 1, 1, nil)
		r.many(t, &first, 20, 1, nil)
		r.many(t, &rest, 50, 1, ErrBusy)
		rest.Wait() // at once
		r.sent(t, 1)
		first.Wait()
		r.sent(t, 1, 10, 10)
		r.wait()
	})
}

// TestWhoGivesUpHurtsNobody has checks of a batch, and of those that wait for
// one, be given up.
func TestWhoGivesUpHurtsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(100 * time.Millisecond)
		gone, leave := context.WithCancel(t.Context())
		var wg, left sync.WaitGroup
		give := func() {
			left.Go(func() {
				if err := r.ask(gone, "gone", 1); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		r.many(t, &wg, 1, 1, nil)
		give()
		r.many(t, &wg, 2, 1, nil)
		time.Sleep(150 * time.Millisecond) // they are sent
		give()
		r.many(t, &wg, 2, 1, nil)
		leave()
		left.Wait()
		wg.Wait()
		r.sent(t, 1, 3, 2)
		r.wait()
	})
}

// TestEveryoneHasTheirTime has a gate that is silent: nobody waits longer than a
// second, and a request is given up with the last who waits for it.
func TestEveryoneHasTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(time.Hour)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				began := time.Now()
				if err := r.ask(t.Context(), "n", 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
			synctest.Wait()
			time.Sleep(300 * time.Millisecond)
		}
		wg.Wait()
		r.wait()
		r.sent(t, 1, 3, 1)
	})
}

func TestNobodyWaitsForAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(time.Millisecond)
		var wg sync.WaitGroup
		r.many(t, &wg, 1, 1, nil)
		r.many(t, &wg, 3, 1, nil)
		r.down = func() bool { return true }
		r.many(t, &wg, 10, 1, ErrTripped)
		wg.Wait()
		r.sent(t, 1, 1, 1, 1) // each of which may be the probe
		r.wait()
	})
}
