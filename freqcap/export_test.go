package freqcap

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/keyspace"
)

// ChargeLua is the script.
var ChargeLua = chargeLua

// The one line of the script that reads Redis' clock, and what tests put in its
// place: it reads a list of the same two numbers, which carries the hash tag of
// the keys.
const (
	clockLine = "local clock = redis.call('TIME')\n"
	testLine  = "local clock = redis.call('LRANGE', string.match(KEYS[1], '^[^}]*}') .. ':clock', 0, 1)\n"
)

// NewOnTestClock makes a Limiter whose script differs in that line alone.
func NewOnTestClock(client redis.UniversalClient, space *keyspace.Space, g *guard.Guard) *Limiter {
	if strings.Count(chargeLua, clockLine) != 1 {
		panic("the script does not read its clock in the line that tests replace")
	}
	l := New(client, space, g)
	l.source = strings.Replace(chargeLua, clockLine, testLine, 1)
	l.sha = redis.NewScript(l.source).Hash()
	return l
}

// SetTestClock sets the clock that the caps of a user are judged by, in
// milliseconds.
func SetTestClock(ctx context.Context, client redis.UniversalClient, space *keyspace.Space, user sendgate.UserID, millis int64) error {
	tag, _, _ := strings.Cut(space.Record(user), "}")
	key := tag + "}:clock"
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, key)
		p.RPush(ctx, key, millis/1000, fmt.Sprint(millis%1000*1000+999))
		return nil
	})
	return err
}

// KeyOf is the key in which a user's cap counts.
func KeyOf(space *keyspace.Space, user sendgate.UserID, c sendgate.BoundCap) (string, error) {
	k, err := counterOf(space, user, c)
	return k.key, err
}
