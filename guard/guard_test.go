package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/sendgate/sendgate/guard"
)

const (
	limit  = 5 * time.Millisecond
	places = 3
)

var (
	errDown  = errors.New("connection refused")
	errReply = errors.New("OOM")
	errOther = errors.New("another call's")
)

// rig is a guard and what it said of its breaker.
type rig struct {
	*guard.Guard
	changes []bool
}

func newRig() *rig {
	r := &rig{}
	r.Guard = guard.New(guard.Options{
		Name: "redis", Limit: limit, InFlight: places,
		Answered:  func(err error) bool { return errors.Is(err, errReply) },
		Elsewhere: func(err error) bool { return errors.Is(err, errOther) },
		Changed:   func(_ string, open bool) { r.changes = append(r.changes, open) },
	})
	return r
}

func returns(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// hangs is a dependency that never answers.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (r *rig) fail(t *testing.T, times int, fn func(context.Context) error) {
	t.Helper()
	for range times {
		if err := r.Do(t.Context(), fn); err == nil || errors.Is(err, gobreaker.ErrOpenState) {
			t.Fatalf("a failing call: %v", err)
		}
	}
}

func (r *rig) is(t *testing.T, open bool, changes ...bool) {
	t.Helper()
	if r.Open() != open || fmt.Sprint(r.changes) != fmt.Sprint(changes) {
		t.Fatalf("open %v, changes %v; want %v, %v", r.Open(), r.changes, open, changes)
	}
}

func TestTenFailuresInARowOpenTheBreaker(t *testing.T) {
	for name, fn := range map[string]func(context.Context) error{"refused": returns(errDown), "silent": hangs} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				r.fail(t, 9, fn)
				if err := r.Do(t.Context(), returns(nil)); err != nil {
					t.Fatal(err)
				}
				r.fail(t, 9, fn)
				r.is(t, false)
				r.fail(t, 1, fn)
				r.is(t, true, true)
				called := false
				err := r.Do(t.Context(), func(context.Context) error { called = true; return nil })
				if !errors.Is(err, gobreaker.ErrOpenState) || err.Error() != "redis: circuit breaker is open" || called {
					t.Fatalf("behind an open breaker: %v, called %v", err, called)
				}
			})
		})
	}
}

func TestOneProbeDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.fail(t, 10, returns(errDown))
		time.Sleep(time.Second + 1)
		r.fail(t, 1, returns(errDown)) // the probe
		r.is(t, true, true)
		time.Sleep(time.Second + 1)
		release := make(chan struct{})
		var probe sync.WaitGroup
		probe.Go(func() {
			err := r.Do(t.Context(), func(context.Context) error { <-release; return nil })
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := r.Do(t.Context(), returns(nil)); !errors.Is(err, gobreaker.ErrOpenState) {
			t.Errorf("beside the probe: %v", err)
		}
		close(release)
		probe.Wait()
		r.is(t, false, true, false)
		if err := r.Do(t.Context(), returns(nil)); err != nil {
			t.Error(err)
		}
	})
}

func TestAnswersDoNotCount(t *testing.T) {
	r := newRig()
	r.fail(t, 9, returns(errDown))
	r.fail(t, 30, returns(fmt.Errorf("fill: %w", errReply)))
	r.fail(t, 9, returns(errDown)) // an answer breaks the row
	r.is(t, false)
}

func TestWhatAnotherCallCountsDoesNot(t *testing.T) {
	r := newRig()
	r.fail(t, 9, returns(errDown))
	r.fail(t, 30, returns(fmt.Errorf("fill: %w", errOther)))
	r.is(t, false)
	r.fail(t, 1, returns(errDown)) // which does not break the row either
	r.is(t, true, true)
}

func TestTheLimitHoldsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRig(), time.Now()
		err := r.Do(t.Context(), hangs)
		if took := time.Since(began); took != limit || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("took %v: %v", took, err)
		}
	})
}

func TestACallWithALimitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		for range 10 {
			began := time.Now()
			err := r.Within(t.Context(), 3*limit, hangs)
			if took := time.Since(began); took != 3*limit || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("took %v: %v", took, err)
			}
		}
		r.is(t, true, true)
	})
}

// errNetworkTimeout is what a connection returns whose deadline has passed.
var errNetworkTimeout = &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}

func TestWhoGivesUpDoesNotCount(t *testing.T) {
	for name, call := range map[string]func(r *rig) error{
		"cancelled": func(r *rig) error {
			ctx, cancel := context.WithCancel(context.Background())
			return r.Do(ctx, func(ctx context.Context) error { cancel(); return hangs(ctx) })
		},
		"in a hurry": func(r *rig) error {
			ctx, cancel := context.WithTimeout(context.Background(), limit/2)
			defer cancel()
			return r.Do(ctx, hangs)
		},
		"in a hurry, and the network knew first": func(r *rig) error {
			ctx, cancel := context.WithTimeout(context.Background(), limit/2)
			defer cancel()
			return r.Do(ctx, returns(errNetworkTimeout))
		},
		"gone before": func(r *rig) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return r.Do(ctx, func(context.Context) error { panic("asked") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				r.fail(t, 9, hangs)
				for range 20 {
					if err := call(r); err == nil {
						t.Fatal("no error")
					}
				}
				r.is(t, false)
				r.fail(t, 1, hangs) // nor does it break the row
				r.is(t, true, true)
			})
		})
	}
}

// A caller whose own limit is the guard's, begun a moment earlier, waits as
// long as anybody: if it did not count, such callers would never open the
// breaker of a dependency that hangs.
func TestAPatientCallersDeadlineCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			time.Sleep(limit / 100)
			if err := r.Do(ctx, hangs); err == nil {
				t.Fatal("no error")
			}
			cancel()
		}
		r.is(t, true, true)
	})
}

func TestNoMoreThanItsPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		release := make(chan struct{})
		var under, most atomic.Int64
		var holders, others sync.WaitGroup
		for range places {
			holders.Go(func() {
				_ = r.Do(t.Context(), func(context.Context) error { <-release; return nil }) // it has no limit of its own
			})
		}
		synctest.Wait()
		began := time.Now()
		for range 100 {
			others.Go(func() {
				err := r.Do(t.Context(), func(context.Context) error {
					most.Store(max(most.Load(), under.Add(1)))
					defer under.Add(-1)
					return nil
				})
				if !errors.Is(err, guard.ErrBusy) || time.Since(began) != limit {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		}
		others.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), limit/2)
		defer cancel()
		if err := r.Do(ctx, returns(nil)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, guard.ErrBusy) {
			t.Errorf("who left while waiting: %v", err)
		}
		r.is(t, false) // a lack of places is nobody's failure
		close(release)
		holders.Wait()
		if most.Load() != 0 {
			t.Error("somebody got in")
		}
		if err := r.Do(t.Context(), returns(nil)); err != nil {
			t.Errorf("with places again: %v", err)
		}
	})
}

func TestNeverMoreUnderWay(t *testing.T) {
	g := guard.New(guard.Options{Name: "store", Limit: time.Minute, InFlight: places})
	var under atomic.Int64
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			err := g.Do(t.Context(), func(context.Context) error {
				if n := under.Add(1); n > places {
					t.Errorf("%d at once", n)
				}
				under.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
}

func TestAPanicGivesItsPlaceBack(t *testing.T) {
	r := newRig()
	for range places + 1 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = r.Do(t.Context(), func(context.Context) error { panic("x") })
		}()
	}
	if err := r.Do(t.Context(), returns(nil)); err != nil {
		t.Error(err)
	}
}
