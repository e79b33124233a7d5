package freqcap_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/redisconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newGuard makes a guard that does not get in the way of a slow machine.
func newGuard() *guard.Guard {
	return guard.New(guard.Options{Name: "caps", Limit: time.Minute, InFlight: 64, Answered: redisconn.Answered})
}

var spaces atomic.Int64

// newSpace makes a space that no other test has.
func newSpace(t testing.TB) *keyspace.Space {
	t.Helper()
	s, err := keyspace.New(fmt.Sprintf("t%d", spaces.Add(1)), 8)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rig is a Limiter on the test clock, with what it works on.
type rig struct {
	t      testing.TB
	client redis.UniversalClient
	space  *keyspace.Space
	*freqcap.Limiter
}

func onTestClock(t testing.TB, client redis.UniversalClient) *rig {
	t.Helper()
	space := newSpace(t)
	return &rig{t, client, space, freqcap.NewOnTestClock(client, space, newGuard())}
}

func onRedisClock(t testing.TB, client redis.UniversalClient) *rig {
	t.Helper()
	space := newSpace(t)
	return &rig{t, client, space, freqcap.New(client, space, newGuard())}
}

// at sets a user's test clock.
func (b *rig) at(user sendgate.UserID, millis int64) {
	b.t.Helper()
	if err := freqcap.SetTestClock(context.Background(), b.client, b.space, user, millis); err != nil {
		b.t.Fatal(err)
	}
}

// atHome sets a household's test clock.
func (b *rig) atHome(id string, millis int64) {
	b.t.Helper()
	if err := freqcap.SetSubjectClock(context.Background(), b.client, b.space, "household_id", id, millis); err != nil {
		b.t.Fatal(err)
	}
}

// judge asks for one answer, which must not be an error.
func (b *rig) judge(user sendgate.UserID, id string, reserve bool, caps ...sendgate.BoundCap) sendgate.CapAnswer {
	b.t.Helper()
	a := b.Judge(context.Background(), []sendgate.CapAsk{{User: user, NotificationID: id, Caps: caps, Look: !reserve}}, 0)[0]
	if a.Err != nil {
		b.t.Fatalf("%s of %s: %v", id, user, a.Err)
	}
	return a
}

// charge is judge with reserve.
func (b *rig) charge(user sendgate.UserID, id string, caps ...sendgate.BoundCap) sendgate.CapAnswer {
	b.t.Helper()
	return b.judge(user, id, true, caps...)
}

// ttl is what Redis says of a user's record.
func (b *rig) ttl(user sendgate.UserID) time.Duration {
	b.t.Helper()
	return b.client.PTTL(context.Background(), b.key(user)).Val()
}

func (b *rig) key(user sendgate.UserID) string { return b.space.Caps("", string(user)) }

// slots are how many entries a user's record holds as of an instant, in all its
// counters.
func (b *rig) slots(user sendgate.UserID, millis int64) (n int) {
	b.t.Helper()
	record, err := b.client.Get(context.Background(), b.key(user)).Result()
	if err != nil {
		b.t.Fatal(err)
	}
	usage, err := freqcap.Decode(record, time.UnixMilli(millis))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range usage.Counts {
		n += c.Used
	}
	return n
}

// capOf makes a cap of everything, or by the fields with their values that
// follow the limit in turn.
func capOf(window time.Duration, limit int, by ...string) sendgate.BoundCap {
	c := sendgate.BoundCap{Cap: sendgate.Cap{Kind: sendgate.CapRolling, Window: window, Limit: limit}, Room: limit}
	for i := 0; i < len(by); i += 2 {
		c.By, c.Values = append(c.By, sendgate.Field(by[i])), append(c.Values, by[i+1])
	}
	return c
}

func instant(millis int64) time.Time { return time.UnixMilli(millis).UTC() }

// looking makes asks that only look.
func looking(asks []sendgate.CapAsk) []sendgate.CapAsk {
	for i := range asks {
		asks[i].Look = true
	}
	return asks
}
