package redisshares_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/redisshares"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSpace(t *testing.T) *keyspace.Space {
	t.Helper()
	s, err := keyspace.New("t", 16)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func take(t *testing.T, s *redisshares.Shares) (mine [prefs.PendingShards]bool) {
	t.Helper()
	mine, err := s.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mine
}

// division is how many gates take each shard, once all know of each other.
func division(t *testing.T, gates []*redisshares.Shares) (taken [prefs.PendingShards]int) {
	t.Helper()
	for _, g := range gates {
		take(t, g)
	}
	for _, g := range gates {
		for shard, mine := range take(t, g) {
			if mine {
				taken[shard]++
			}
		}
	}
	return taken
}

func TestEveryShardIsTakenOnce(t *testing.T) {
	client := redistest.Embedded(t)
	var gates []*redisshares.Shares
	for n := range 20 {
		gates = append(gates, redisshares.New(client, newSpace(t)))
		for shard, times := range division(t, gates) {
			if times != 1 {
				t.Errorf("with %d gates, shard %d is taken %d times", n+1, shard, times)
			}
		}
	}
}

// TestOneGateMoreMovesLittle has a gate join others: what they keep they had.
func TestOneGateMoreMovesLittle(t *testing.T) {
	client := redistest.Embedded(t)
	a, b := redisshares.New(client, newSpace(t)), redisshares.New(client, newSpace(t))
	division(t, []*redisshares.Shares{a, b})
	before := take(t, a)
	take(t, redisshares.New(client, newSpace(t)))
	for shard, mine := range take(t, a) {
		if mine && !before[shard] {
			t.Errorf("shard %d has come to a gate because another one joined", shard)
		}
	}
}

// TestWhoIsGoneIsMissed has gates that do not sweep any more, by the clock of
// this Redis and by that of another one, which was ahead.
func TestWhoIsGoneIsMissed(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	s := redisshares.New(client, newSpace(t))
	now, err := client.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{"long ago": now.Add(-time.Hour), "just too long ago": now.Add(-5100 * time.Millisecond), "ahead": now.Add(time.Hour)} {
		if err := client.Do(t.Context(), "ZADD", "t:sweepers", at.UnixMilli(), name).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for shard, mine := range take(t, s) {
		if !mine {
			t.Errorf("shard %d is left to somebody who is gone", shard)
		}
	}
	if ttl, err := client.PTTL(t.Context(), "t:sweepers").Result(); err != nil || ttl <= 0 || ttl > 5*time.Second {
		t.Errorf("what is kept of them lasts for %v, %v", ttl, err)
	}
}

func TestARedisThatIsDown(t *testing.T) {
	server := redistest.Start(t)
	s := redisshares.New(server.Client(), newSpace(t))
	server.Kill()
	if mine, err := s.Take(t.Context()); err == nil {
		t.Errorf("a Redis that is down gives %v", mine)
	}
}

func TestOnACluster(t *testing.T) {
	c := redistest.StartCluster(t)
	gates := []*redisshares.Shares{redisshares.New(c.Client(), newSpace(t)), redisshares.New(c.Client(), newSpace(t))}
	for shard, times := range division(t, gates) {
		if times != 1 {
			t.Errorf("shard %d is taken %d times", shard, times)
		}
	}
}
