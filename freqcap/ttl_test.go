package freqcap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
)

// slack is by how much a key may outlive its newest entry.
const slack = 5 * time.Second

func testEveryKeyHasATTLAfterEveryOutcome(t *testing.T, client redis.UniversalClient) {
	ctx, b := context.Background(), onTestClock(t, client)
	one, never := capOf(time.Minute, 1), capOf(time.Hour, 0)
	b.at("u", 1_000_000)
	check := func(when string, most time.Duration) {
		t.Helper()
		if ttl := b.ttl("u"); ttl <= most-slack || ttl > most {
			t.Errorf("%s: TTL %s", when, ttl)
		}
	}
	lose := func() {
		t.Helper()
		if !client.Persist(ctx, b.key("u")).Val() {
			t.Fatal("there was no TTL to lose")
		}
	}
	b.charge("u", "n1", one)
	check("charged", time.Minute+slack)
	lose()
	b.charge("u", "n2", one)
	check("denied", time.Minute+slack)
	lose()
	b.charge("u", "n1", one)
	check("held already", time.Minute+slack)
	lose()
	b.judge("u", "n3", false, one)
	check("looked at", time.Minute+slack)
	lose()
	b.charge("u", "n1", one, never)
	check("denied by another", time.Minute+slack)
	lose()
	b.at("u", 1_030_000)
	b.charge("u", "n4", one)
	check("half a window later", time.Minute/2+slack)
	lose()
	b.at("u", 2_000_000)
	b.judge("u", "n5", false, one)
	check("all expired", slack)
	b.at("v", 1)
	b.charge("v", "n", never)
	if n := client.Exists(ctx, b.key("v")).Val(); n != 0 {
		t.Error("a denied ask made a key")
	}
}

// A denial and a look leave a log, and its TTL, as they were.
func testADenialChangesNothing(t *testing.T, client redis.UniversalClient) {
	ctx, b, two := context.Background(), onTestClock(t, client), capOf(time.Minute, 2)
	for i, at := range []int64{0, 1000} {
		b.at("u", at)
		b.charge("u", fmt.Sprintf("n%d", i), two)
	}
	b.at("u", 60_500) // n0 has left and is still in the log
	log := func() string {
		return client.Get(ctx, b.key("u")).Val()
	}
	before, ttl := log(), b.ttl("u")
	for _, reserve := range []bool{true, false} {
		b.judge("u", "n2", reserve, two, capOf(time.Minute, 0, "channel", "push"))
	}
	if after := log(); after != before || b.ttl("u") > ttl {
		t.Errorf("%x with %s became %x with %s", before, ttl, after, b.ttl("u"))
	}
	b.charge("u", "n3", two)
	if n := b.slots("u", 60_500); n != 2 {
		t.Errorf("%d entries after a charge, want 2: those that have left are removed", n)
	}
}

func TestMemoryComesBack(t *testing.T) {
	t.Parallel()
	b := onRedisClock(t, redistest.Start(t).Client())
	const users = 2000
	asks := make([]sendgate.CapAsk, users)
	for i := range asks {
		asks[i] = sendgate.CapAsk{User: sendgate.UserID(fmt.Sprint("u", i)), NotificationID: "n",
			Caps: []sendgate.BoundCap{capOf(time.Second, 1), capOf(time.Second, 2, "channel", "push")}}
	}
	for i, a := range b.Judge(context.Background(), asks, 0) {
		if a.Err != nil || !a.Admitted {
			t.Fatalf("user %d: %+v", i, a)
		}
	}
	size := func() int64 { return b.client.DBSize(context.Background()).Val() }
	if n := size(); n != users {
		t.Fatalf("%d keys", n)
	}
	redistest.Until(t, "all keys have expired", func() bool { return size() == 0 })
}
