package prefs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
)

func TestReadFillsTheCache(t *testing.T) {
	r := newRig(t)
	r.put(t, "u", "newsletter", "email", off())
	for range 3 {
		r.read(t, "u", 0)
		r.read(t, "nobody", 0) // a user without a record is cached too
	}
	want := []prefs.CacheOutcome{prefs.CacheHit, prefs.CacheMiss, prefs.CacheHit, prefs.CacheHit, prefs.CacheHit, prefs.CacheHit}
	if !slices.Equal(r.outcomes, want) {
		t.Errorf("outcomes %v, not %v", r.outcomes, want)
	}
	for _, user := range []sendgate.UserID{"u", "nobody"} {
		ttl, err := r.client.PTTL(t.Context(), r.space.Record(user)).Result()
		if err != nil || ttl <= 0 || ttl > keyspace.MaxRecordTTL {
			t.Errorf("the record of %s lasts %v (%v)", user, ttl, err)
		}
	}
}

func TestReadOfWhatIsKnownToBeNewer(t *testing.T) {
	r := newRig(t)
	r.put(t, "u", "newsletter", "email", off())
	old := r.read(t, "u", 0)
	r.put(t, "u", "newsletter", "email", on())
	// Redis has lost the newer record, as a replica would that missed it.
	body, err := prefs.EncodePreferences(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.client.Set(t.Context(), r.space.Record("u"), keyspace.RecordValue(1, body), time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if p := r.read(t, "u", 2); p.Revision != 2 {
		t.Errorf("revision %d was served to somebody who knows of 2", p.Revision)
	}
	// It was put right for those who do not know, too.
	if p := r.read(t, "u", 0); p.Revision != 2 {
		t.Errorf("revision %d is cached", p.Revision)
	}
	// A store that is behind is not believed either.
	if a := r.reader.Read(t.Context(), []sendgate.RecordAsk{{User: "u", AtLeast: 3}})[0]; a.Err == nil {
		t.Errorf("revision %d was served to somebody who knows of 3", a.Preferences.Revision)
	}
}

// TestSlowFill has a read of the store begin before an opt-out and end after
// it, with the key evicted in between or not: the opt-out stays.
func TestSlowFill(t *testing.T) {
	for _, evicted := range []bool{false, true} {
		for _, leasedAgain := range []bool{false, true} {
			t.Run(fmt.Sprintf("evicted=%t,leased again=%t", evicted, leasedAgain), func(t *testing.T) {
				r := newRig(t)
				slow := newRigOn(t, r.client, &faultyStore{Store: r.store.Store})
				began, resume := make(chan struct{}), make(chan struct{})
				slow.store.set(func(s *faultyStore) {
					s.afterGet = func(context.Context, *prefs.Record) {
						close(began)
						<-resume
					}
				})
				done := make(chan *sendgate.Preferences)
				go func() {
					done <- slow.reader.Read(context.Background(), []sendgate.RecordAsk{{User: "u"}})[0].Preferences
				}()
				<-began
				r.put(t, "u", "newsletter", "email", off())
				if evicted {
					r.client.Del(t.Context(), r.space.Record("u"))
				}
				if leasedAgain && evicted {
					if granted, c := r.cache.Lease(t.Context(), "u", 0, "another"); !granted {
						t.Fatalf("no lease: %+v", c)
					}
				}
				close(resume)
				<-done
				slow.store.set(nil)
				if p := r.read(t, "u", 0); p.Revision != 1 {
					t.Errorf("revision %d after the late fill", p.Revision)
				}
			})
		}
	}
}

func TestReadersShareOneRead(t *testing.T) {
	r := newRig(t)
	var once sync.Once
	began, resume := make(chan struct{}), make(chan struct{})
	r.store.set(func(s *faultyStore) {
		s.afterGet = func(context.Context, *prefs.Record) {
			once.Do(func() { close(began) })
			<-resume
		}
	})
	var wg sync.WaitGroup
	read := func(atLeast int64) {
		wg.Go(func() { r.reader.Read(t.Context(), []sendgate.RecordAsk{{User: "u", AtLeast: atLeast}}) })
	}
	for range 20 {
		read(0)
	}
	<-began
	redistest.Until(t, "all have looked into the cache", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.outcomes) == 20
	})
	before := r.store.getCount()
	// Who knows of a newer revision does not join a read that began before it.
	read(1)
	redistest.Until(t, "another read is under way", func() bool { return r.store.getCount() == before+1 })
	close(resume)
	wg.Wait()
	if n := r.store.getCount(); before > 3 || n > before+1 {
		t.Errorf("20 readers read the store %d times, and one who knew more %d times", before, n-before)
	}
}

func TestFillOutlivesItsCheck(t *testing.T) {
	r := newRig(t)
	resume := make(chan struct{})
	r.store.set(func(s *faultyStore) { s.afterGet = func(context.Context, *prefs.Record) { <-resume } })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := r.reader.Read(ctx, []sendgate.RecordAsk{{User: "u"}})[0]; a.Err == nil {
		t.Error("a check that has ended got an answer")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if a := r.reader.Read(ctx, []sendgate.RecordAsk{{User: "u"}})[0]; !errors.Is(a.Err, context.DeadlineExceeded) {
		t.Errorf("%v", a.Err)
	}
	close(resume)
	redistest.Until(t, "the cache is filled", func() bool { return r.cache.Get(t.Context(), []sendgate.UserID{"u"})[0].Preferences != nil })
}

func TestCacheDown(t *testing.T) {
	server := redistest.Start(t)
	r := newRig(t)
	r = newRigOn(t, server.Client(), r.store)
	r.put(t, "u", "newsletter", "email", off())
	server.Kill()
	answers := r.reader.Read(t.Context(), []sendgate.RecordAsk{{User: "u"}, {User: "u", FallBack: true}})
	if answers[0].Err == nil || !answers[0].CacheDown {
		t.Errorf("without falling back: %+v", answers[0])
	}
	if answers[1].Err != nil || !answers[1].CacheDown || answers[1].Preferences.Revision != 1 {
		t.Errorf("falling back: %+v", answers[1])
	}
	// It comes back empty: what was acknowledged is still honoured.
	server.Restart()
	redistest.Until(t, "Redis answers", func() bool { return r.client.Ping(t.Context()).Err() == nil })
	if p := r.read(t, "u", 0); p.Revision != 1 {
		t.Errorf("revision %d from an empty Redis", p.Revision)
	}
}

// TestReadMany reads as many records as a gate reads at once.
func TestReadMany(t *testing.T) {
	r := newRig(t)
	var asks []sendgate.RecordAsk
	for i := range 100 {
		asks = append(asks, sendgate.RecordAsk{User: sendgate.UserID(fmt.Sprintf("u%d", i))})
	}
	r.put(t, "u7", "newsletter", "email", off())
	for range 2 {
		for i, a := range r.reader.Read(t.Context(), asks) {
			if want := int64(0); a.Err != nil || (i == 7) != (a.Preferences.Revision != want) {
				t.Errorf("user %d: %+v", i, a)
			}
		}
	}
}

// TestAFillStormIsBounded has a Redis come back empty, and everybody asked about
// at once, many times over: no more reads of the store are under way than its
// guard lets through, nobody's record is read twice, and all are answered.
func TestAFillStormIsBounded(t *testing.T) {
	const users, callers, most = 500, 8, 100 // most is the guard's, in the rig
	r := newRig(t)
	var mu sync.Mutex
	underWay, peak, total := 0, 0, 0
	r.store.set(func(s *faultyStore) {
		s.beforeGet = func(context.Context, sendgate.UserID) error {
			mu.Lock()
			defer mu.Unlock()
			underWay++
			total++
			peak = max(peak, underWay)
			return nil
		}
		s.afterGet = func(context.Context, *prefs.Record) {
			mu.Lock()
			defer mu.Unlock()
			underWay--
		}
	})
	var asking sync.WaitGroup
	for range callers {
		asking.Go(func() {
			for i := 0; i < users; i += 50 {
				var asks []sendgate.RecordAsk
				for k := range 50 {
					asks = append(asks, sendgate.RecordAsk{User: sendgate.UserID(fmt.Sprint("u", i+k))})
				}
				for _, a := range r.reader.Read(t.Context(), asks) {
					if a.Err != nil {
						t.Errorf("not answered: %v", a.Err)
					}
				}
			}
		})
	}
	asking.Wait()
	mu.Lock()
	defer mu.Unlock()
	if peak > most {
		t.Errorf("%d reads of the store were under way at once", peak)
	}
	// A read that begins after another has filled the cache finds it there; of
	// those that began before it, all but one wait for that one.
	if total > users+users/10 {
		t.Errorf("%d reads of the store for %d users", total, users)
	}
}

func TestGarbageInTheCache(t *testing.T) {
	r := newRig(t)
	r.put(t, "u", "newsletter", "email", off())
	for _, garbage := range []string{"", "R", "R1", "Rx ", "R1 {", "R2 1{\"rev\":1}", "nonsense", "R1 2{}"} {
		if err := r.client.Set(t.Context(), r.space.Record("u"), garbage, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		if p := r.read(t, "u", 0); p.Revision != 1 {
			t.Errorf("%q: revision %d", garbage, p.Revision)
		}
	}
}
