package freqcap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/quiet"
)

// What a record says of its counters is what the script says of them, under any
// limit: how many slots are taken, and when there is room.
func TestARecordSaysWhenThereIsRoom(t *testing.T) {
	b := onTestClock(t, redistest.Embedded(t))
	now := parse(t, "2026-06-10T20:00:00Z")
	b.SetNow(func() time.Time { return now })
	caps := []sendgate.BoundCap{capOf(24*time.Hour, 6), bucketsOf(24*time.Hour, 24, 6), calendarOf(quiet.Day, "UTC", 6)}
	pass := func(d time.Duration) {
		now = now.Add(d)
		b.at("u", now.UnixMilli())
	}
	compare := func() {
		t.Helper()
		record, err := b.client.Get(context.Background(), b.key("u")).Result()
		if err != nil {
			t.Fatal(err)
		}
		usage, err := freqcap.Decode(record, now)
		if err != nil || len(usage.Counts) != len(caps) {
			t.Fatalf("%+v, %v", usage, err)
		}
		for limit := range 8 {
			for i, c := range caps {
				c.Limit, c.Room = limit, limit
				want, got := b.judge("u", "x", false, c).Caps[0], usage.Counts[i]
				if at := got.ResetsAt(limit); got.Used != want.Used || !at.Equal(want.ResetsAt) {
					t.Errorf("%s under a limit of %d: %d taken, room at %v; the script says %d and %v", got.Kind, limit, got.Used, at, want.Used, want.ResetsAt)
				}
			}
		}
	}
	pass(0)
	for i := range 4 {
		b.charge("u", fmt.Sprint("n", i), caps...)
		pass(40 * time.Minute)
	}
	compare()
	held := ask("u", "held", "push", caps...)
	held.Hold = time.Minute
	b.goes(held)
	pass(time.Second)
	b.charge("u", "n5", caps...)
	compare()
	pass(time.Minute) // the hold is over, and nobody has written that down
	compare()
}
