package redistest

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/redisconn"
)

// Embedded opens a client on an empty embedded Redis, the one of `gate dev`.
// Keys do not expire there by themselves. Both end with the test.
func Embedded(t testing.TB) redis.UniversalClient {
	t.Helper()
	return open(t, redisconn.Options{Addrs: []string{miniredis.RunT(t).Addr()}})
}
