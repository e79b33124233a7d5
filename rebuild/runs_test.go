package rebuild_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

// TestALongRun has a rebuild take longer than the schedule has between two.
func TestALongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var atOnce, most atomic.Int64
		var takes atomic.Int64
		takes.Store(int64(40 * time.Minute))
		r := run(t, rebuild.Schedule{Cron: every15(t)}, func(_ *running, o *rebuild.Options) {
			o.Segments = 1
			o.Store = scanner(func(_ context.Context, _, _ int, each func(*prefs.Record) error) error {
				most.Store(max(most.Load(), atOnce.Add(1)))
				defer atOnce.Add(-1)
				time.Sleep(time.Duration(takes.Load()))
				return each(optedOut("a"))
			})
		})
		until(44 * time.Minute)
		r.at(t, "the first", 40*time.Minute)
		if got := r.skipped.Load(); got != 2 {
			t.Errorf("%d were skipped, at 15 and 30 minutes", got)
		}
		// One that ends as the next is due makes that one wait for nothing.
		takes.Store(int64(15 * time.Minute))
		until(76 * time.Minute)
		r.at(t, "the others", 40*time.Minute, time.Hour, 75*time.Minute)
		if got := r.skipped.Load(); got != 2 || most.Load() != 1 {
			t.Errorf("%d were skipped, %d ran at once", got, most.Load())
		}
	})
}

// TestAFailedRunIsNotRepeated has runs fail while many changes pile up.
func TestAFailedRunIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		r := run(t, rebuild.Schedule{Cron: every15(t)}, func(_ *running, o *rebuild.Options) {
			o.Store = scanner(func(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
				if broken.Load() {
					return errBroken
				}
				return holding("a")(ctx, segment, segments, each)
			})
		})
		r.streams.entries.Store(10 * early)
		until(14 * time.Minute)
		r.at(t, "not before its time", 0)
		until(16 * time.Minute)
		r.at(t, "at its time", 0, 15*time.Minute)
		broken.Store(false)
		until(31 * time.Minute)
		r.at(t, "and again", 0, 15*time.Minute, 30*time.Minute)
		r.streams.entries.Add(early)
		until(32 * time.Minute)
		r.at(t, "what has succeeded is", 0, 15*time.Minute, 30*time.Minute, 31*time.Minute+10*time.Second)
		// A filter that is published is no failure, whatever followed.
		r.streams.failAnnounced.Store(true)
		r.streams.entries.Add(early)
		until(33 * time.Minute)
		r.streams.entries.Add(early)
		until(34 * time.Minute)
		r.at(t, "nor is one that nobody was told of", 0, 15*time.Minute, 30*time.Minute, 31*time.Minute+10*time.Second,
			32*time.Minute+10*time.Second, 33*time.Minute+10*time.Second)
	})
}

// TestRunEnds ends it before, between and in the middle of rebuilds.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _, p := options(&shelf{}, "a")
		o.Now, p.now = time.Now, time.Now
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		rebuild.New(o).Run(ended, rebuild.Schedule{Cron: every15(t), Every: time.Second, Skipped: func(int) {}})
		if got := p.ended(); len(got) != 0 {
			t.Errorf("%v of a context that had ended", got)
		}
		r := run(t, rebuild.Schedule{Cron: every15(t)}, unchanged)
		until(time.Minute)
		r.stop()
		until(time.Hour)
		r.at(t, "between rebuilds", 0)
		r = run(t, rebuild.Schedule{Cron: every15(t)}, func(_ *running, o *rebuild.Options) {
			o.Store = scanner(func(ctx context.Context, _, _ int, _ func(*prefs.Record) error) error {
				<-ctx.Done()
				return ctx.Err()
			})
		})
		until(61 * time.Minute)
		r.stop()
		if ends := r.progress.ended(); len(ends) != 1 || !errors.Is(ends[0].err, context.Canceled) || len(r.shelf.entries) != 0 {
			t.Errorf("in the middle: %v, %v is published", ends, r.shelf.entries)
		}
	})
}

// never is a schedule that has come to its end.
type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

func TestAScheduleThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, rebuild.Schedule{Cron: never{}}, unchanged)
		until(23 * time.Hour)
		r.at(t, "once, as nothing is published", 0)
		r.streams.entries.Add(early)
		until(23*time.Hour + time.Minute)
		r.at(t, "and when changes pile up", 0, 23*time.Hour+10*time.Second)
		r.stop()
		r = run(t, rebuild.Schedule{Cron: never{}}, func(r *running, _ *rebuild.Options) { r.shelf.add(1, time.Now()) })
		until(23*time.Hour + 30*time.Minute)
		r.at(t, "not at all, as something is")
	})
}
