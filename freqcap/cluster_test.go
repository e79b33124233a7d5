package freqcap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
)

func TestClusterKeepsAUsersKeysTogether(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t)
	client := nodes.Client()
	space, err := keyspace.New("t", keyspace.DefaultPartitions)
	if err != nil {
		t.Fatal(err)
	}
	l := freqcap.New(client, space, newGuard())
	const users = 10_000
	shapes := []string{"user%d", "{user%d}", "a{%d", "a}%d{b", "{}%d", "}{%d", "x:{%d}:y", "ü %d%%2F"}
	asks := make([]sendgate.CapAsk, users)
	for i := range asks {
		name := fmt.Sprintf(shapes[i%len(shapes)], i)
		asks[i] = sendgate.CapAsk{User: sendgate.UserID(name), NotificationID: name, Caps: []sendgate.BoundCap{
			capOf(time.Hour, 1, "channel", "{push}"), capOf(time.Hour, 2, "category", "}{"), capOf(24*time.Hour, 3),
		}}
	}
	for _, used := range []int{1, 1} {
		for i, a := range l.Judge(context.Background(), asks, 0) {
			if a.Err != nil || !a.Admitted || a.Caps[0].Used != used || a.Caps[2].Used != used {
				t.Fatalf("user %q: %+v", asks[i].User, a)
			}
		}
	}
	total := int64(0)
	for _, m := range nodes.Masters() {
		n := m.Client().DBSize(context.Background()).Val()
		if n < users/6 {
			t.Errorf("%s holds %d keys", m.Addr(), n)
		}
		total += n
	}
	if total != users {
		t.Errorf("%d keys, want %d", total, users)
	}
}

// One master that is gone takes its own users with it and no others.
func TestAMasterThatIsGone(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t)
	client := nodes.Client()
	b := onRedisClock(t, client)
	asks := make([]sendgate.CapAsk, 64)
	for i := range asks {
		asks[i] = sendgate.CapAsk{User: sendgate.UserID(fmt.Sprint("u", i)), NotificationID: "n", Caps: []sendgate.BoundCap{capOf(time.Hour, 5)}}
	}
	for i, a := range b.Judge(context.Background(), asks, 0) {
		if a.Err != nil {
			t.Fatalf("ask %d: %v", i, a.Err)
		}
	}
	gone := nodes.Masters()[1]
	gone.Kill()
	for i, a := range b.Judge(context.Background(), asks, 0) {
		key := b.key(asks[i].User)
		node, err := client.(*redis.ClusterClient).MasterForKey(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		if lost := node.Options().Addr == gone.Addr(); (a.Err != nil) != lost || a.Admitted == lost {
			t.Errorf("ask %d at %s: %+v", i, node.Options().Addr, a)
		}
	}
}
