package bloom_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
)

func TestTheKeeper(t *testing.T) {
	first, second := build(t, at(1, 50), keys("a", 10)), build(t, at(2, 150), keys("a", 20))
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 1000)
		defer s.stop()
		s.expect(t, "nothing is published", "0 current false")
		if s.keeper.Status().Settled {
			t.Error("settled, and the streams are not followed yet")
		}
		s.shelf.put(1, first)
		s.keeper.Poke()
		s.expect(t, "told, and the streams are not followed", "1 current false")
		s.overlay.SetLive(true)
		time.Sleep(time.Second)
		s.expect(t, "the streams are followed", "1 current true")
		if !s.keeper.Status().Settled {
			t.Error("not settled")
		}
		// A gap, and what was lost comes to light by a replay.
		s.tape.set(func(t *tape) { t.changes = []sendgate.Consent{consent("u", 3)} })
		s.overlay.Gap()
		s.expect(t, "after a gap", "1 current false")
		time.Sleep(time.Second)
		s.expect(t, "covered again", "1 current true")
		if c, exact, _ := s.overlay.Consent("u"); !exact || c.Revision != 3 {
			t.Errorf("what was in the gap is not known: %+v", c)
		}
		// Not followed for a while, and nothing lost.
		s.overlay.SetLive(false)
		s.expect(t, "not followed", "1 current false")
		s.overlay.SetLive(true)
		s.expect(t, "followed again", "1 current true")
		// One that cannot be covered waits, and the one in use stays.
		s.tape.set(func(t *tape) { t.err = errors.New("the position is lost") })
		s.shelf.put(2, second)
		time.Sleep(11 * time.Second)
		s.expect(t, "found by looking, and waiting", "1 current true problem")
		runs := s.tape.count()
		time.Sleep(time.Hour)
		s.expect(t, "an hour later", "1 current true problem")
		if more := s.tape.count() - runs; more > 3600/20 {
			t.Errorf("%d replays were tried in an hour", more)
		}
		s.tape.set(func(t *tape) { t.err = nil })
		time.Sleep(time.Minute)
		s.expect(t, "it can be covered after all", "2 current true")
		if s.shelf.fetches != 2 {
			t.Errorf("%d fetches of two snapshots", s.shelf.fetches)
		}
		// Lost by the one in use: a newer one is better than none.
		s.overlay.Gap()
		s.tape.set(func(t *tape) { t.err = errors.New("the position is lost") })
		s.shelf.put(3, build(t, at(3, 500), keys("a", 30)))
		time.Sleep(11 * time.Second)
		s.expect(t, "neither can be covered", "3 current false")
		if got := [3]int64{s.results[0].Load(), s.results[1].Load(), s.results[2].Load()}; got != [3]int64{3, 0, 0} {
			t.Errorf("loaded, refused, failed: %v", got)
		}
	})
}

func TestAReplayThatIsCutThrough(t *testing.T) {
	file := build(t, at(1, 50), keys("a", 10))
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 1000)
		defer s.stop()
		s.overlay.SetLive(true)
		s.tape.set(func(t *tape) { t.during = s.overlay.Gap })
		s.shelf.put(1, file)
		s.keeper.Poke()
		s.expect(t, "a gap in every replay", "1 current false")
		s.tape.set(func(t *tape) { t.during = nil })
		time.Sleep(time.Minute)
		s.expect(t, "a replay without one", "1 current true")
	})
}

// TestAnOverlayThatIsTooSmall has more users change since the snapshot than are
// kept: what the filter rejects has to be verified until the next one.
func TestAnOverlayThatIsTooSmall(t *testing.T) {
	first, second := build(t, at(1, 50), keys("a", 10)), build(t, at(2, 90), keys("a", 10))
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 64)
		defer s.stop()
		s.overlay.SetLive(true)
		s.shelf.put(1, first)
		s.keeper.Poke()
		s.expect(t, "in use", "1 current true")
		// Those that the snapshot has may be dropped.
		for i := range 1000 {
			s.overlay.Apply(consent(fmt.Sprint("old", i), 1), sendgate.Place{Offset: sendgate.Offset{Millis: 40}})
		}
		s.expect(t, "old changes are dropped", "1 current true")
		for i := range 1000 {
			s.overlay.Apply(consent(fmt.Sprint("new", i), 1), sendgate.Place{Offset: sendgate.Offset{Millis: 60}})
		}
		s.expect(t, "new changes are dropped", "1 current false")
		many := make([]sendgate.Consent, 1000)
		for i := range many {
			many[i] = consent(fmt.Sprint("new", i), 1)
		}
		s.tape.set(func(t *tape) { t.changes = many })
		time.Sleep(time.Minute)
		s.expect(t, "they do not fit", "1 current false")
		s.tape.set(func(t *tape) { t.changes = nil })
		s.shelf.put(2, second)
		time.Sleep(11 * time.Second)
		s.expect(t, "the next one has them", "2 current true")
	})
}

// TestRefusedSnapshotsAreSaidOnce refuses what is published until something
// else is.
func TestRefusedSnapshotsAreSaidOnce(t *testing.T) {
	good, other := build(t, at(3, 50), keys("a", 10)), at(9, 50)
	other.Namespace = "other"
	foreign := build(t, other, keys("a", 1))
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 1000)
		defer s.stop()
		s.overlay.SetLive(true)
		s.shelf.put(9, foreign)
		s.shelf.put(8, good[:500])
		s.shelf.put(3, good)
		s.keeper.Poke()
		s.expect(t, "the newest that is right", "3 current true problem")
		for _, why := range []string{"generation 9", `"other"`, "generation 8", "cut off"} {
			if got := s.keeper.Status().Problem.Error(); !strings.Contains(got, why) {
				t.Errorf("%q is not in %s", why, got)
			}
		}
		time.Sleep(time.Hour)
		if got := [3]int64{s.results[0].Load(), s.results[1].Load(), s.results[2].Load()}; got != [3]int64{1, 2, 0} || s.shelf.fetches != 3 {
			t.Errorf("loaded, refused, failed: %v, with %d fetches", got, s.shelf.fetches)
		}
		// Mended under the same name.
		s.shelf.put(9, build(t, at(9, 50), keys("a", 10)))
		time.Sleep(11 * time.Second)
		s.expect(t, "mended", "9 current true")
		s.shelf.mu.Lock()
		s.shelf.down = errors.New("no route")
		s.shelf.mu.Unlock()
		time.Sleep(11 * time.Second)
		s.expect(t, "nobody knows what is published", "9 current true problem")
	})
}

// TestLookupsDuringSwaps swaps snapshots under many readers while the garbage
// collector unmaps those that nobody refers to: nobody is missed who has opted
// out by all of them.
func TestLookupsDuringSwaps(t *testing.T) {
	const users = 500
	var files [3][]byte
	for i := range files {
		files[i] = build(t, at(int64(i+1), 50), keys("a", users))
	}
	overlay := bloom.NewOverlay(1000)
	overlay.SetLive(true)
	live := bloom.NewLive(overlay, nil)
	use := func(i int) {
		s, err := load(t, files[i%len(files)])
		if err != nil {
			t.Fatal(err)
		}
		bloom.Use(live, s)
	}
	use(0)
	var swapping atomic.Bool
	swapping.Store(true)
	var readers sync.WaitGroup
	var asked atomic.Int64
	for r := range 16 {
		readers.Go(func() {
			for i := r; swapping.Load(); i++ {
				a := live.Look(optedOut("a", i%users).User, promotions)
				if !a.Loaded || !a.Current || !a.OptedOut || a.Hold {
					t.Errorf("user %d: %+v", i%users, a)
					return
				}
				asked.Add(1)
			}
		})
	}
	for i := range 10 {
		use(i)
		runtime.GC()
	}
	swapping.Store(false)
	readers.Wait()
	if asked.Load() < 1000 {
		t.Errorf("only %d were asked", asked.Load())
	}
}
