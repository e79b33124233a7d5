package freqcap_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
)

// testPresumptions has asks presume what a user's record is: they are judged if it
// is so, and otherwise nothing happens, to other subjects either.
func testPresumptions(t *testing.T, client redis.UniversalClient) {
	b := onRedisClock(t, client)
	ctx, record := context.Background(), b.space.Record("ann")
	own, home := capOf(time.Hour, 50), ofHousehold("h", time.Hour, 50)
	long := "R7 1{" + strings.Repeat("x", 3000) + "}"
	used := 0
	for _, c := range []struct {
		name, holds, presumed string
		want                  bool
	}{
		{"nothing is presumed", "R1 1{}", "", true},
		{"it is so", "R1 1{}", "R1 1{}", true},
		{"another revision", "R2 1{}", "R1 1{}", false},
		{"another body", "R1 1{ }", "R1 1{}", false},
		{"only the beginning", "R1 1{}", "R1 1", false},
		{"only the end is another", long, long + " ", false},
		{"long", long, long, true},
		{"a number", "17", "17.0", false},
		{"a lease", "Labc", "R1 1{}", false},
		{"nothing is there", "", "R1 1{}", false},
	} {
		if c.holds == "" {
			client.Del(ctx, record)
		} else if err := client.Set(ctx, record, c.holds, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		for _, caps := range [][]sendgate.BoundCap{{own}, {own, home}} {
			charge := ask("ann", c.name+string(rune('0'+len(caps))), "push", caps...)
			charge.Presumed = c.presumed
			look := charge
			look.Look = true
			for _, a := range b.Judge(ctx, []sendgate.CapAsk{look, charge, ask("ben", charge.NotificationID, "push", own)}, 0)[:2] {
				if a.Err != nil || a.Refuted == c.want || a.Admitted != c.want || a.Refuted && len(a.Caps) > 0 {
					t.Errorf("%s, %d caps: %+v", c.name, len(caps), a)
				}
			}
			if c.want {
				used++
			}
		}
		a := b.judge("ann", "x", false, own, home)
		if a.Caps[0].Used != used || a.Caps[1].Used != used/2 {
			t.Errorf("%s: %d and %d slots are taken, not %d and %d", c.name, a.Caps[0].Used, a.Caps[1].Used, used, used/2)
		}
	}
	// Who is asked about beside somebody whose presumption fails is judged.
	if a := b.judge("ben", "x", false, own); a.Caps[0].Used != 20 {
		t.Errorf("%d slots of ben are taken", a.Caps[0].Used)
	}
	if n := b.client.Exists(ctx, b.space.Record("ben")).Val(); n != 0 {
		t.Error("a record was made")
	}
}
