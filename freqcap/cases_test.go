package freqcap_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/redistest"
)

func testADeniedAskCostsNothing(t *testing.T, client redis.UniversalClient) {
	b, two := onTestClock(t, client), capOf(4*time.Second, 2)
	for i, want := range []bool{true, true, false, false, true, true} {
		b.at("u", int64(i)*1000)
		if got := b.charge("u", fmt.Sprintf("n%d", i), two); got.Admitted != want {
			t.Errorf("second %d: %+v", i, got)
		}
	}
}

func TestManyGatesShareACap(t *testing.T) {
	t.Parallel()
	server, space, three := redistest.Start(t), newSpace(t), capOf(time.Minute, 3, "channel", "push")
	gates := []*freqcap.Limiter{
		freqcap.New(server.Client(), space, newGuard()), freqcap.New(server.Client(), space, newGuard()),
	}
	var admitted, failed atomic.Int64
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range 100 {
		all.Go(func() {
			<-start
			ask := sendgate.CapAsk{User: "u", NotificationID: fmt.Sprintf("n%d", i), Caps: []sendgate.BoundCap{three}}
			switch a := gates[i%2].Judge(context.Background(), []sendgate.CapAsk{ask}, 0)[0]; {
			case a.Err != nil:
				failed.Add(1)
			case a.Admitted:
				admitted.Add(1)
			}
		})
	}
	close(start)
	all.Wait()
	if admitted.Load() != 3 || failed.Load() != 0 {
		t.Fatalf("%d admitted, %d failed", admitted.Load(), failed.Load())
	}
}

func testAllCapsAreChargedOrNone(t *testing.T, client redis.UniversalClient) {
	minute, day := capOf(time.Minute, 1), capOf(24*time.Hour, 10, "category", "marketing")
	for _, caps := range [][]sendgate.BoundCap{{minute, day}, {day, minute}} {
		b := onTestClock(t, client)
		for i := range 50 {
			b.at("u", int64(i)*1000)
			if got := b.charge("u", fmt.Sprintf("n%d", i), caps...); got.Admitted != (i == 0) {
				t.Fatalf("ask %d: %+v", i, got)
			}
		}
		if got := b.judge("u", "later", false, day); got.Caps[0].Used != 1 {
			t.Fatalf("the day's count: %+v", got.Caps[0])
		}
	}
}

func testAnIDIsChargedOncePerCap(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	all, push, sms := capOf(time.Minute, 2), capOf(time.Minute, 1, "channel", "push"), capOf(time.Minute, 1, "channel", "sms")
	b.at("u", 0)
	b.charge("u", "n", all, push)
	b.at("u", 1000)
	again := b.charge("u", "n", all, push)
	want := sendgate.CapAnswer{Admitted: true, At: instant(1000), Caps: []sendgate.CapState{
		{Cap: all.Cap, Used: 1, ResetsAt: instant(60_000)}, {Cap: push.Cap, Values: push.Values, Used: 1, ResetsAt: instant(60_000)},
	}}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("asked again (-want +got):\n%s", diff)
	}
	if other := b.charge("u", "n", all, sms); !other.Admitted || other.Caps[0].Used != 1 || other.Caps[1].Used != 1 {
		t.Errorf("on another channel: %+v", other)
	}
	if never := b.charge("u", "n", capOf(time.Minute, 0)); !never.Admitted || never.Caps[0].Full {
		t.Errorf("with the limit lowered to 0 since: %+v", never)
	}
	b.at("u", 60_000)
	if later := b.charge("u", "n", all); !later.Admitted || !later.Caps[0].ResetsAt.Equal(instant(120_000)) {
		t.Errorf("once its slot has left: %+v", later)
	}
}

// The order in which a cap names its fields means nothing; values do not run
// into each other.
func testOneCounterPerSetOfFields(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	b.at("u", 0)
	there := capOf(time.Minute, 1, "category", "c", "channel", "push")
	back := capOf(time.Minute, 1, "channel", "push", "category", "c")
	fields, values := fmt.Sprint(back.By), fmt.Sprint(back.Values)
	b.charge("u", "n1", there)
	if got := b.charge("u", "n2", back); got.Admitted {
		t.Errorf("two counters: %+v", got)
	}
	if fmt.Sprint(back.By) != fields || fmt.Sprint(back.Values) != values {
		t.Errorf("the ask was changed: %v %v", back.By, back.Values)
	}
	others := []sendgate.BoundCap{
		capOf(time.Minute, 1, "category", "push", "channel", "c"), capOf(time.Minute, 1, "category", "c"),
		capOf(time.Minute, 1), capOf(2*time.Minute, 1, "category", "c", "channel", "push"),
		capOf(time.Minute, 1, "category", "c:channel:push", "channel", ":"),
	}
	if got := b.charge("u", "n3", others...); !got.Admitted {
		t.Errorf("shared a counter with another cap: %+v", got)
	}
	b.at("U", 0)
	if got := b.charge("U", "n4", there); !got.Admitted {
		t.Errorf("another user's counter: %+v", got)
	}
}

func testAClockThatStepsBackFreesNothing(t *testing.T, client redis.UniversalClient) {
	b, two := onTestClock(t, client), capOf(10*time.Second, 2)
	b.at("u", 100_000)
	b.charge("u", "n1", two)
	for _, back := range []int64{90_000, 50_000, 1} {
		b.at("u", back)
		if got := b.judge("u", "look", false, two); got.Caps[0].Used != 1 {
			t.Errorf("at %d: %+v", back, got)
		}
	}
	b.at("u", 90_000)
	if got := b.charge("u", "n2", two); !got.Admitted || !got.Caps[0].ResetsAt.Equal(instant(100_000)) {
		t.Errorf("charged in the past: %+v", got)
	}
	// The key lives until the entry that seems to be of the future has left.
	if ttl := b.ttl("u"); ttl <= 20*time.Second || ttl > 25*time.Second {
		t.Errorf("TTL %s", ttl)
	}
	if got := b.charge("u", "n3", two); got.Admitted {
		t.Errorf("the step back made room: %+v", got)
	}
	b.at("u", 100_000)
	if got := b.charge("u", "n4", two); !got.Admitted || got.Caps[0].Used != 2 {
		t.Errorf("once the older one has left: %+v", got)
	}
}

// Instants are Redis' own, whatever the gates' clocks say, and in UTC.
func TestRedisClockIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	b, one := onRedisClock(t, redistest.Start(t).Client()), capOf(time.Hour, 1)
	before := b.client.Time(context.Background()).Val()
	a := b.charge("u", "n", one)
	after := b.client.Time(context.Background()).Val()
	at := a.Caps[0].ResetsAt.Add(-time.Hour)
	if at.Before(before.Truncate(time.Millisecond)) || at.After(after) || at.Location() != time.UTC {
		t.Fatalf("charged at %s, between %s and %s", at, before, after)
	}
}

func testChangedLimits(t *testing.T, client redis.UniversalClient) {
	b, limit := onTestClock(t, client), func(n int) sendgate.BoundCap { return capOf(time.Minute, n) }
	for i := range 5 {
		b.at("u", int64(i)*1000)
		b.charge("u", fmt.Sprintf("n%d", i), limit(10))
	}
	// Room for one more under a limit of 3 comes when three of five have left.
	lowered := b.charge("u", "lowered", limit(3))
	want := sendgate.CapState{Cap: limit(3).Cap, Used: 5, Full: true, ResetsAt: instant(62_000)}
	if diff := cmp.Diff(want, lowered.Caps[0]); diff != "" || lowered.Admitted {
		t.Errorf("lowered (-want +got):\n%s", diff)
	}
	never := b.charge("u", "never", limit(0))
	if !never.Caps[0].Full || never.Admitted || !never.Caps[0].ResetsAt.IsZero() {
		t.Errorf("never: %+v", never)
	}
	more := 0
	for i := range 20 {
		if b.charge("u", fmt.Sprintf("raised%d", i), limit(10)).Admitted {
			more++
		}
	}
	if more != 5 {
		t.Errorf("raised again: %d more", more)
	}
	b.at("u", 62_000) // what was charged since is of 4 s
	if got := b.charge("u", "at last", limit(8)); !got.Admitted || got.Caps[0].Used != 8 {
		t.Errorf("after three have left: %+v", got)
	}
}

// Asked again at ResetsAt a full cap has room, and a millisecond earlier it has
// not.
func testAFullCapSaysWhenItHasRoom(t *testing.T, client redis.UniversalClient) {
	b := onTestClock(t, client)
	charges := []int64{3, 700, 701, 5000, 5001, 5002}
	for i, at := range charges {
		b.at("u", at)
		b.charge("u", fmt.Sprintf("n%d", i), capOf(10*time.Second, len(charges)))
	}
	for limit := 1; limit <= len(charges); limit++ {
		full := capOf(10*time.Second, limit)
		b.at("u", 5002)
		state := b.judge("u", "again", false, full).Caps[0]
		if !state.Full || !state.ResetsAt.After(instant(5002)) {
			t.Fatalf("limit %d: %+v", limit, state)
		}
		at := state.ResetsAt.UnixMilli()
		b.at("u", at-1)
		before := b.judge("u", "again", false, full)
		b.at("u", at)
		then := b.judge("u", "again", false, full)
		if before.Admitted || !then.Admitted {
			t.Errorf("limit %d: %t just before %d, %t then", limit, before.Admitted, at, then.Admitted)
		}
	}
}

func testUsersWithOddNames(t *testing.T, client redis.UniversalClient) {
	b, one := onRedisClock(t, client), capOf(time.Minute, 1, "campaign_id", "}{")
	names := strings.Split("a+b@x.io|a b@x.io|a%2Bb@x.io|a:b|{a}|a/b|a%2Fb|ÜSER|üser|}{|{|}|{}a", "|")
	for _, name := range names {
		if got := b.charge(sendgate.UserID(name), "n", one); got.Caps[0].Used != 1 {
			t.Errorf("%q is not a user of its own: %+v", name, got)
		}
		if got := b.charge(sendgate.UserID(name), "other", one); got.Admitted {
			t.Errorf("%q has two slots", name)
		}
	}
}
