package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/node"
	"github.com/sendgate/sendgate/prefs"
)

func (g gate) readiness() string {
	_, body := g.call(http.MethodGet, "/readyz", "")
	return fmt.Sprint(body)
}

// TestWhatIsBackIsNoticedWithoutChecks has a gate that nobody asks any more.
func TestWhatIsBackIsNoticedWithoutChecks(t *testing.T) {
	server := redistest.Start(t)
	g := startGate(t, server.Client(), openStore(t), nil).follows()
	server.Kill()
	for range 12 {
		g.check("n", "u", "promotions")
	}
	if got := g.metric(`sendgate_breaker_open{dependency="redis"}`); got != "1" {
		t.Errorf("the breaker is %q", got)
	}
	server.Restart()
	redistest.Until(t, "it is noticed", func() bool {
		return g.metric(`sendgate_breaker_open{dependency="redis"}`) == "0" && !strings.Contains(g.readiness(), "is not asked for a while")
	})
}

// unlisted is a store whose pending index cannot be read.
type unlisted struct {
	prefs.Store
	down atomic.Bool
}

func (s *unlisted) Pending(ctx context.Context, shard int, each func(prefs.PendingEntry) error) error {
	if s.down.Load() {
		return errors.New("no route to the table")
	}
	return s.Store.Pending(ctx, shard, each)
}

// TestAStoreThatDoesNotSayWhatIsPending shows in readiness, and the age of what
// may be pending is counted on.
func TestAStoreThatDoesNotSayWhatIsPending(t *testing.T) {
	store := &unlisted{Store: openStore(t)}
	var ahead atomic.Int64
	g := startGate(t, redistest.Start(t).Client(), store, func(o *node.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}).follows()
	redistest.Until(t, "the gate is ready", g.isReady)
	store.down.Store(true)
	ahead.Store(int64(5 * time.Minute))
	redistest.Until(t, "it shows", func() bool {
		return strings.Contains(g.readiness(), "no route to the table") && len(g.metric("sendgate_pending_oldest_seconds")) >= len("300")
	})
	store.down.Store(false)
	redistest.Until(t, "it is over", func() bool {
		return !strings.Contains(g.readiness(), "no route") && g.metric("sendgate_pending_oldest_seconds") == "0"
	})
}
