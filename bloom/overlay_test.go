package bloom_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
)

func consent(user string, revision int64) sendgate.Consent {
	return sendgate.Consent{
		User: sendgate.UserID(user), Revision: revision, Global: revision%2 == 1,
		Settings: sendgate.Settings{{Topic: "promotions", Channel: "push"}: revision%3 == 0},
	}
}

func isThe(c sendgate.Consent, user string, revision int64) bool {
	want := consent(user, revision)
	return c.User == want.User && c.Revision == want.Revision && c.Global == want.Global && maps.Equal(c.Settings, want.Settings)
}

// Whatever was applied is known from the moment that Apply returned, and stays
// known, whoever else applies and reads.
func TestAppliedIsKnownAtOnce(t *testing.T) {
	const writers, readers, each, revisions = 8, 64, 100, 4
	o := bloom.NewOverlay(1 << 20)
	o.SetLive(true)
	var applied [writers][each]atomic.Int64 // the revision that Apply returned for
	name := func(w, u int) string { return fmt.Sprintf("u%d-%d", w, u) }
	check := func(w, u int) bool {
		least := applied[w][u].Load()
		c, exact, ok := o.Consent(sendgate.UserID(name(w, u)))
		if least == 0 && !ok {
			return true
		}
		return ok && exact && c.Revision >= least && isThe(c, name(w, u), c.Revision)
	}
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for range readers {
		reading.Go(func() {
			for {
				w, u := rand.IntN(writers), rand.IntN(each)
				if !check(w, u) {
					t.Errorf("%s is not known as it was applied", name(w, u))
					return
				}
				select {
				case <-done:
					return
				default:
					runtime.Gosched()
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			for revision := int64(1); revision <= revisions; revision++ {
				for u := range each {
					o.Apply(consent(name(w, u), revision), sendgate.Place{})
					applied[w][u].Store(revision)
					if !check(w, u) {
						t.Errorf("%s is not known to who applied it", name(w, u))
					}
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	if o.Len() != writers*each || o.Dropped() != 0 {
		t.Errorf("%d users, %d dropped", o.Len(), o.Dropped())
	}
}

func TestTheNewestRevisionWinsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		revisions := rapid.SliceOfN(rapid.Int64Range(1, 50), 1, 20).Draw(t, "revisions")
		o, newest := bloom.NewOverlay(100), int64(0)
		for _, r := range revisions {
			o.Apply(consent("u", r), sendgate.Place{})
			newest = max(newest, r)
			if c, _, ok := o.Consent("u"); !ok || !isThe(c, "u", newest) {
				t.Fatalf("after %d: %+v, want revision %d", r, c, newest)
			}
		}
	})
}

func TestExactness(t *testing.T) {
	o := bloom.NewOverlay(1 << 16) // so that the two are in nobody's way
	is := func(when, user string, exact bool) {
		t.Helper()
		if _, got, ok := o.Consent(sendgate.UserID(user)); !ok || got != exact {
			t.Errorf("%s: exact %v, known %v; want %v", when, got, ok, exact)
		}
	}
	if _, exact, ok := o.Consent("nobody"); exact || ok {
		t.Error("somebody unknown is known")
	}
	o.Apply(consent("a", 1), sendgate.Place{})
	is("before it is live", "a", false)
	if o.Live() || o.WasLive() {
		t.Error("live from the beginning")
	}
	o.SetLive(true)
	is("once it is live", "a", true)
	o.SetLive(false)
	is("while it is not", "a", false)
	if o.Live() || !o.WasLive() {
		t.Error("it was live")
	}
	o.SetLive(true)
	is("live again, nothing missed", "a", true)
	o.Gap()
	is("after a gap", "a", false)
	o.Apply(consent("b", 1), sendgate.Place{})
	is("learned since", "b", true)
	o.Apply(consent("a", 1), sendgate.Place{})
	is("heard again", "a", true)
	o.Gap()
	o.Apply(consent("a", 2), sendgate.Place{})
	o.Apply(consent("a", 1), sendgate.Place{})
	is("an old one came late", "a", true)
	o.Apply(consent("b", 0), sendgate.Place{})
	is("an old one makes nothing exact", "b", false)
	if c, _, _ := o.Consent("b"); c.Revision != 1 {
		t.Errorf("revision %d is no lower bound any more", c.Revision)
	}
}

func TestTheOverlayIsBounded(t *testing.T) {
	const size, users = 640, 10_000
	o := bloom.NewOverlay(size)
	for i := range users {
		o.Apply(consent(fmt.Sprint("u", i), 1), sendgate.Place{})
	}
	if n := o.Len(); n > size || n < size*9/10 || o.Dropped() != users-int64(n) {
		t.Errorf("%d users, %d dropped", n, o.Dropped())
	}
	for i := users - 10; i < users; i++ {
		if _, _, ok := o.Consent(sendgate.UserID(fmt.Sprint("u", i))); !ok {
			t.Errorf("one of the last is gone: u%d", i)
		}
	}
}

// Who changes again and again is not who changed longest ago.
func TestWhoChangedLongestAgoIsDropped(t *testing.T) {
	o := bloom.NewOverlay(640)
	for i := range 10_000 {
		o.Apply(consent("restless", int64(i)), sendgate.Place{})
		o.Apply(consent(fmt.Sprint("u", i), 1), sendgate.Place{})
		if c, _, ok := o.Consent("restless"); !ok || c.Revision != int64(i) {
			t.Fatalf("after %d others: known %v, %+v", i, ok, c)
		}
	}
	for i := range 100 {
		if _, _, ok := o.Consent(sendgate.UserID(fmt.Sprint("u", i))); ok {
			t.Errorf("u%d is still there", i)
		}
	}
}

// TestAGapWhileAChangeWasMade has a gap come between the moment a change was
// made here and the moment it is applied.
func TestAGapWhileAChangeWasMade(t *testing.T) {
	o := bloom.NewOverlay(10)
	o.SetLive(true)
	epoch := o.Epoch()
	o.Gap()
	c := sendgate.Consent{User: "u", Revision: 5}
	o.ApplySince(c, epoch)
	if _, exact, known := o.Consent("u"); exact || !known {
		t.Errorf("exact %t, known %t", exact, known)
	}
	// Announced after the gap, it is exact, and stays so.
	o.Apply(c, sendgate.Place{})
	o.ApplySince(c, epoch)
	if _, exact, _ := o.Consent("u"); !exact {
		t.Error("what was announced since the gap is a hint")
	}
}

// TestWhatASnapshotHasIsDropped trims an overlay by a snapshot's position: only
// what stands before it in the streams, and only what has been known for long.
func TestWhatASnapshotHasIsDropped(t *testing.T) {
	o, now := bloom.NewOverlay(1<<16), time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	o.SetNow(func() time.Time { return now })
	place := func(partition int, millis uint64) sendgate.Place {
		return sendgate.Place{Partition: partition, Offset: sendgate.Offset{Millis: millis}}
	}
	for i := range 1000 {
		o.Apply(consent(fmt.Sprint("before", i), 1), place(i%2, uint64(1+i%50)))
	}
	o.Apply(consent("at the mark", 1), place(0, 100))
	o.Apply(consent("after", 1), place(0, 101))
	o.Apply(consent("before in another partition", 1), place(1, 101))
	o.Apply(consent("of no known partition", 1), place(2, 1))
	o.ApplySince(consent("made here", 1), o.Epoch())
	// Announced again: it was made before the first time.
	o.Apply(consent("repeated", 1), place(0, 50))
	o.Apply(consent("repeated", 1), place(0, 200))
	now = now.Add(time.Minute)
	o.Apply(consent("young", 1), place(0, 50))
	position := sendgate.Position{Token: "t", Offsets: []sendgate.Offset{{Millis: 100}, {Millis: 200}}}
	o.Trim(position, 2*time.Minute)
	if o.Len() != 1007 {
		t.Errorf("%d users are left of those who are young", o.Len())
	}
	o.Trim(position, time.Minute)
	for user, kept := range map[string]bool{
		"before7": false, "at the mark": false, "after": true, "before in another partition": false, "of no known partition": true,
		"made here": true, "repeated": false, "young": true,
	} {
		if _, _, known := o.Consent(sendgate.UserID(user)); known != kept {
			t.Errorf("%s: known %t", user, known)
		}
	}
	if o.Len() != 4 || o.Dropped() != 0 {
		t.Errorf("%d are left, %d dropped", o.Len(), o.Dropped())
	}
}
