package rebuild_test

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/rebuild"
)

// shelf is an archive in memory, by the clock of the test.
type shelf struct {
	entries []archive.Entry // the newest first
	fail    error
}

func (s *shelf) Generations(context.Context) ([]archive.Entry, error) { return s.entries, s.fail }

func (s *shelf) Publish(_ context.Context, generation int64, write func(io.Writer) error) error {
	s.add(generation, time.Now())
	return write(io.Discard)
}

func (s *shelf) Prune(context.Context, int) error { return nil }

func (s *shelf) add(generation int64, at time.Time) {
	s.entries = append([]archive.Entry{{Generation: generation, Published: at.UTC()}}, s.entries...)
}

// running is a builder that runs by a schedule in a bubble, whose clock begins
// at midnight.
type running struct {
	*progress
	streams *streams
	shelf   *shelf
	skipped atomic.Int64
	stop    context.CancelFunc
	ended   chan struct{}
}

const early = 1000

// every15 is due at 0, 15, 30 and 45 minutes.
func every15(t *testing.T) cron.Schedule {
	t.Helper()
	s, err := cron.ParseStandard("*/15 * * * *")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run starts a builder. It is stopped when the test ends, if not before.
func run(t *testing.T, s rebuild.Schedule, change func(r *running, o *rebuild.Options)) *running {
	t.Helper()
	r := &running{shelf: &shelf{}, ended: make(chan struct{})}
	var o rebuild.Options
	o, r.streams, r.progress = options(r.shelf, "a")
	o.Now, r.now = time.Now, time.Now
	change(r, &o)
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = func() { cancel(); <-r.ended }
	t.Cleanup(r.stop)
	s.EarlyChanges, s.Every = early, 10*time.Second
	s.Skipped = func(n int) { r.skipped.Add(int64(n)) }
	go func() {
		defer close(r.ended)
		rebuild.New(o).Run(ctx, s)
	}()
	synctest.Wait()
	return r
}

// until lets time pass until so long after midnight.
func until(since time.Duration) {
	midnight := time.Now().UTC().Truncate(24 * time.Hour)
	time.Sleep(time.Until(midnight.Add(since)))
	synctest.Wait()
}

// at holds that rebuilds ended so long after midnight, and no others did.
func (r *running) at(t *testing.T, what string, want ...time.Duration) {
	t.Helper()
	var got []time.Duration
	for _, e := range r.progress.ended() {
		got = append(got, e.at.UTC().Sub(e.at.UTC().Truncate(24*time.Hour)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: rebuilds at %v, want %v", what, got, want)
	}
}

func unchanged(*running, *rebuild.Options) {}

func TestRunsBySchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until(7 * time.Minute)
		r := run(t, rebuild.Schedule{Cron: every15(t)}, unchanged)
		r.at(t, "nothing is published", 7*time.Minute)
		until(50 * time.Minute)
		r.at(t, "by the schedule", 7*time.Minute, 15*time.Minute, 30*time.Minute, 45*time.Minute)
		if got := r.streams.told(); len(got) != 4 || r.skipped.Load() != 0 {
			t.Errorf("the gates were told of %v, %d were skipped", got, r.skipped.Load())
		}
	})
}

func TestTheFirstRun(t *testing.T) {
	for what, c := range map[string]struct {
		published time.Duration // since midnight
		fail      error
		want      time.Duration
	}{
		"what is published is young":        {2 * time.Minute, nil, 15 * time.Minute},
		"it is as old as can be":            {0, nil, 15 * time.Minute},
		"it is old":                         {-time.Second, nil, 7 * time.Minute},
		"it is very old":                    {-24 * time.Hour, nil, 7 * time.Minute},
		"it was published by a clock ahead": {24 * time.Hour, nil, 15 * time.Minute},
		"it is not told what is published":  {2 * time.Minute, errBroken, 7 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			until(7 * time.Minute)
			r := run(t, rebuild.Schedule{Cron: every15(t)}, func(r *running, _ *rebuild.Options) {
				r.shelf.add(1, time.Now().Add(c.published-7*time.Minute))
				r.shelf.fail = c.fail
				r.streams.entries.Store(early * 100) // of long ago, so no reason to begin
			})
			if until(15*time.Minute - time.Second); c.want < 15*time.Minute {
				r.at(t, what, c.want)
				return
			}
			r.at(t, what)
			until(16 * time.Minute)
			r.at(t, what, c.want)
		})
	}
}

func TestManyChangesBringItForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, rebuild.Schedule{Cron: every15(t)}, unchanged)
		want := []time.Duration{0}
		hold := func(what string, since time.Duration, more ...time.Duration) {
			t.Helper()
			until(since)
			want = append(want, more...)
			r.at(t, what, want...)
		}
		r.streams.entries.Store(early - 1)
		hold("one too few", 5*time.Minute)
		r.streams.entries.Add(1)
		hold("enough", 5*time.Minute+30*time.Second, 5*time.Minute+10*time.Second)
		hold("and no more are needed", 14*time.Minute)
		hold("the schedule goes on", 16*time.Minute, 15*time.Minute)
		// Redis has lost data, the marks of the last one perhaps among it.
		r.streams.entries.Store(20)
		hold("a count that goes back", 17*time.Minute, 16*time.Minute+10*time.Second)
		r.streams.entries.Store(20 + early - 1)
		hold("one too few again", 18*time.Minute)
		r.streams.entries.Add(1)
		hold("enough again", 19*time.Minute, 18*time.Minute+10*time.Second)
		// Redis does not say how many.
		r.streams.failAdded.Store(true)
		r.streams.entries.Add(2 * early)
		hold("not counted", 20*time.Minute)
		r.streams.failAdded.Store(false)
		hold("counted", 21*time.Minute, 20*time.Minute+10*time.Second)
		r.stop()
		r.streams.entries.Add(2 * early)
		hold("ended", time.Hour)
	})
}

func TestItIsNeverBroughtForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streams{}
		o, _, p := options(&shelf{}, "a")
		o.Streams, o.Now, p.now = s, time.Now, time.Now
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { rebuild.New(o).Run(ctx, rebuild.Schedule{Cron: every15(t), Skipped: func(int) {}}) })
		synctest.Wait()
		s.entries.Store(1 << 40)
		until(14 * time.Minute)
		if got := p.ended(); len(got) != 1 {
			t.Errorf("%d rebuilds", len(got))
		}
		cancel()
		ended.Wait()
	})
}
