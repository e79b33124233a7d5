package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
)

// TestAReplayThatFailsHalfWay has two users change twice since a snapshot was
// built, and the second of their changes cannot be read: what is known of the
// first is a hint, and stays one.
func TestAReplayThatFailsHalfWay(t *testing.T) {
	first, second := build(t, at(1, 50), keys("a", 10)), build(t, at(2, 150), keys("a", 20))
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 1000)
		defer s.stop()
		knows := func(when string, revision int64, want bool) {
			t.Helper()
			for _, user := range []sendgate.UserID{"in", "gone"} {
				if c, exact, _ := s.overlay.Consent(user); c.Revision != revision || exact != want {
					t.Errorf("%s: %s is known at %d, exactly %t", when, user, c.Revision, exact)
				}
			}
		}
		s.tape.set(func(t *tape) {
			t.changes, t.torn = []sendgate.Consent{consent("in", 5), consent("gone", 5), consent("in", 6), consent("gone", 6)}, 2
		})
		s.overlay.SetLive(true)
		s.shelf.put(1, first)
		s.keeper.Poke()
		s.expect(t, "read in part", "1 current false")
		knows("read in part", 5, false)
		time.Sleep(8 * time.Minute) // after ten, the next one would drop them
		s.expect(t, "minutes later", "1 current false")
		knows("minutes later", 5, false)
		// One that is built later needs nothing of what cannot be read. The
		// replay that goes well says nothing of what the others brought.
		s.shelf.put(2, second)
		s.keeper.Poke()
		s.expect(t, "the next one", "2 current true")
		knows("the next one", 5, false)
		s.tape.set(func(t *tape) {
			t.torn, t.changes = 0, append(t.changes, slices.Repeat([]sendgate.Consent{consent("u", 1)}, 50)...)
		})
		s.overlay.Gap()
		time.Sleep(time.Second)
		s.expect(t, "another replay", "2 current true")
		knows("another replay", 5, false)
	})
}

// TestAReplayThatIsMadeAgain has the one that failed half way go well at last.
func TestAReplayThatIsMadeAgain(t *testing.T) {
	file := build(t, at(1, 50), keys("a", 10))
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 1000)
		defer s.stop()
		s.tape.set(func(t *tape) { t.changes, t.torn = []sendgate.Consent{consent("u", 5), consent("u", 6)}, 1 })
		s.overlay.SetLive(true)
		s.shelf.put(1, file)
		s.keeper.Poke()
		s.expect(t, "read in part", "1 current false")
		s.tape.set(func(t *tape) { t.torn = 0 })
		time.Sleep(2 * time.Second)
		s.expect(t, "read to the end", "1 current true")
		if c, exact, _ := s.overlay.Consent("u"); c.Revision != 6 || !exact {
			t.Errorf("known at %d, exactly %t", c.Revision, exact)
		}
	})
}

// TestABlipGivesNothingUp loses the connection, and nothing else, while a newer
// snapshot waits that cannot be covered.
func TestABlipGivesNothingUp(t *testing.T) {
	first, second := build(t, at(1, 50), keys("a", 10)), build(t, at(2, 150), keys("a", 20))
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 1000)
		defer s.stop()
		s.tape.set(func(t *tape) { t.lost = 150 })
		s.overlay.SetLive(true)
		s.shelf.put(1, first)
		s.keeper.Poke()
		s.expect(t, "a good one", "1 current true")
		s.shelf.put(2, second)
		s.keeper.Poke()
		s.expect(t, "one that waits", "1 current true problem")
		s.overlay.SetLive(false)
		s.tape.set(func(t *tape) { t.err = errors.New("no route") })
		time.Sleep(10 * time.Minute)
		s.expect(t, "the connection is lost", "1 current false problem")
		s.tape.set(func(t *tape) { t.err = nil })
		s.overlay.SetLive(true)
		s.expect(t, "it is back", "1 current true problem")
		// After a gap the good one can be covered again, and the other cannot.
		s.overlay.Gap()
		time.Sleep(time.Minute)
		s.expect(t, "a gap", "1 current true problem")
	})
}

// TestFetchesThatComeToNothing has the newest snapshot not come, in three ways.
// That is tried more and more rarely, and meanwhile the one in use is covered
// as ever.
func TestFetchesThatComeToNothing(t *testing.T) {
	first, third := build(t, at(1, 50), keys("a", 10)), build(t, at(3, 150), keys("a", 20))
	for name, c := range noFetches {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStand(t, 1000)
				defer s.stop()
				s.overlay.SetLive(true)
				s.shelf.put(1, first)
				s.keeper.Poke()
				s.expect(t, "in use", "1 current true")
				s.shelf.hook = func(ctx context.Context, generation int64, w io.Writer) error {
					if generation == 2 {
						return c.fetch(ctx, w)
					}
					return nil
				}
				s.shelf.put(2, first)
				for range 60 {
					time.Sleep(59 * time.Second)
					s.overlay.Gap()
					time.Sleep(time.Second)
					synctest.Wait()
					if !s.live.Current() {
						t.Fatal("the one in use is not covered again within a second")
					}
				}
				failed, tries := int(s.results[bloom.LoadFailed].Load()), s.shelf.fetched()-1
				if tries < c.least || tries > 20 || failed < tries-1 {
					t.Errorf("%d tries in an hour, %d of them have failed", tries, failed)
				}
				s.expect(t, "after an hour", "1 current true problem")
				// It does not keep a newer one waiting for longer than its turn.
				s.shelf.put(3, third)
				time.Sleep(15*time.Minute + 10*time.Second)
				s.expect(t, "a newer one", "3 current true")
			})
		})
	}
}

// TestReadyWithoutASnapshot has a gate begin while what is published does not
// come: after a minute it waits for it no longer.
func TestReadyWithoutASnapshot(t *testing.T) {
	file := build(t, at(1, 50), keys("a", 10))
	for name, c := range noFetches {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStand(t, 1000)
				defer s.stop()
				s.shelf.hook = func(ctx context.Context, _ int64, w io.Writer) error { return c.fetch(ctx, w) }
				for generation := range int64(3) {
					s.shelf.put(generation+2, file)
				}
				began := time.Now()
				s.keeper.Poke()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if s.keeper.Status().Settled {
					t.Error("settled before the streams are followed")
				}
				s.overlay.SetLive(true)
				for !s.keeper.Status().Settled && time.Since(began) < time.Hour {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				if took := time.Since(began); took > time.Minute+2*time.Second {
					t.Errorf("settled after %v", took)
				}
			})
		})
	}
}

// noFetches are ways in which a snapshot does not come, and how often that is
// tried in an hour at least.
var noFetches = map[string]struct {
	fetch func(ctx context.Context, w io.Writer) error
	least int
}{
	"a disk that is full": {func(_ context.Context, w io.Writer) error {
		time.Sleep(time.Second)
		_, _ = w.Write(make([]byte, 1000))
		return errors.New("write: no space left on device")
	}, 10},
	"nothing comes": {func(ctx context.Context, _ io.Writer) error { // which is noticed before it has taken too long
		<-ctx.Done()
		return ctx.Err()
	}, 8},
	"byte by byte": {func(ctx context.Context, w io.Writer) error {
		for ctx.Err() == nil {
			time.Sleep(10 * time.Second)
			_, _ = w.Write([]byte{0})
		}
		return ctx.Err()
	}, 3},
}

// TestAProblemIsLoggedNowAndThen has the folder of private copies be gone for an
// hour, in which the gate looks 360 times.
func TestAProblemIsLoggedNowAndThen(t *testing.T) {
	file := build(t, at(1, 50), keys("a", 10))
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 1000)
		defer s.stop()
		if err := os.RemoveAll(s.cache); err != nil {
			t.Fatal(err)
		}
		s.overlay.SetLive(true)
		s.shelf.put(1, file)
		s.keeper.Poke()
		s.expect(t, "gone", "0 current false problem")
		problem := s.keeper.Status().Problem.Error()
		time.Sleep(time.Hour)
		s.expect(t, "an hour later", "0 current false problem")
		if again := s.keeper.Status().Problem.Error(); again != problem || !strings.Contains(problem, s.cache) {
			t.Errorf("the problem is %q, and an hour later %q", problem, again)
		}
		if err := os.Mkdir(s.cache, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		s.expect(t, "it is there", "1 current true")
		s.stop()
		log := s.log.String()
		if n := strings.Count(log, "is not in use"); n < 2 || n > 15 {
			t.Errorf("logged %d times in an hour", n)
		}
		if n := strings.Count(log, "the newest filter is in use"); n != 1 {
			t.Errorf("it is said to be over %d times", n)
		}
	})
}

// TestRatesThatAreRefused publishes a filter that rejects too many by mistake,
// and a good one whose header does not state what its bits make.
func TestRatesThatAreRefused(t *testing.T) {
	many := at(1, 50)
	many.MaxFalsePositive, many.AimFalsePositive = 0.9, 0.9
	good := build(t, at(1, 50), keys("a", 10))
	stated := regexp.MustCompile(`"false_positive_rate":[1-8]`).FindIndex(good)
	if stated == nil {
		t.Fatal("no rate is stated")
	}
	other := bytes.Clone(good)
	other[stated[1]-1]++
	bloom.Mend(other)
	for why, file := range map[string][]byte{
		"at most 0.001 are allowed":        build(t, many, keys("a", 10_000)),
		"make another false-positive rate": other,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStand(t, 1000)
			defer s.stop()
			s.overlay.SetLive(true)
			s.shelf.put(1, file)
			s.keeper.Poke()
			s.expect(t, why, "0 current false problem")
			if problem := fmt.Sprint(s.keeper.Status().Problem); !strings.Contains(problem, why) {
				t.Errorf("%q is not in %q", why, problem)
			}
			if n := s.results[bloom.LoadRefused].Load(); n != 1 {
				t.Errorf("%d were refused", n)
			}
		})
	}
}
