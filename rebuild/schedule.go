package rebuild

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule says when rebuilds are due.
type Schedule struct {
	// Cron is asked for instants in UTC.
	Cron cron.Schedule
	// EarlyChanges brings the next rebuild forward once so many changes were
	// announced since the last; 0 is never.
	EarlyChanges int64
	// Every is how often it is asked whether one is due, at least 100 ms.
	Every time.Duration
	// Skipped is told how many rebuilds were due while another ran.
	Skipped func(n int)
}

// Run rebuilds whenever it is due, until the context ends: at once if nothing
// is published or what is published is older than the schedule would have it,
// then by the schedule, and early when many changes have piled up. There is
// never more than one at once: one that is due during another is skipped.
func (b *Builder) Run(ctx context.Context, s Schedule) {
	tick := time.NewTicker(max(s.Every, 100*time.Millisecond))
	defer tick.Stop()
	due, failed := b.firstDue(ctx, s), false
	for ctx.Err() == nil {
		// What has failed is not worth trying again before the schedule says so.
		if now := b.o.Now().UTC(); isDue(due, now) || !failed && b.piledUp(ctx, s) {
			built, _ := b.Once(ctx) // Progress is told of the error
			failed = built == nil
			due = b.nextDue(s, now)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// isDue tells whether an instant has come. The zero one, which a schedule that
// has come to its end gives, never does.
func isDue(due, now time.Time) bool { return !due.IsZero() && !now.Before(due) }

// firstDue is when the first rebuild is due: now, unless what is published is
// young enough. Its time is the archive's, whose clock may be ahead: that puts
// off nothing.
func (b *Builder) firstDue(ctx context.Context, s Schedule) time.Time {
	now := b.o.Now().UTC()
	published, err := b.o.Archive.Generations(ctx)
	if err != nil || len(published) == 0 {
		return now
	}
	due := s.Cron.Next(earlier(published[0].Published.UTC(), now))
	if isDue(due, now) {
		return now
	}
	if b.base, err = b.o.Streams.Added(ctx); err != nil {
		b.base = 0
	}
	return due
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// nextDue is when the next rebuild is due after one that has just ended.
func (b *Builder) nextDue(s Schedule, began time.Time) time.Time {
	now, skipped := b.o.Now().UTC(), 0
	due := s.Cron.Next(began)
	for !due.IsZero() && due.Before(now) {
		skipped++
		due = s.Cron.Next(due)
	}
	if skipped > 0 {
		s.Skipped(skipped)
	}
	return due
}

// piledUp tells whether so many changes were announced since the streams were
// marked that the next rebuild should not wait. Nor should it where Redis has
// lost data, the marks perhaps among it: until there is another filter, gates
// verify what theirs rejects.
func (b *Builder) piledUp(ctx context.Context, s Schedule) bool {
	added, err := b.o.Streams.Added(ctx)
	if err != nil {
		return false
	}
	return added < b.base || s.EarlyChanges > 0 && added-b.base >= s.EarlyChanges
}
