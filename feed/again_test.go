package feed_test

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/internal/redistest"
)

// heldPage keeps those waiting who read a page that begins at an entry.
type heldPage struct {
	begin   string
	reached chan struct{} // takes one for every reader
	goOn    chan struct{}
}

func (h *heldPage) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *heldPage) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *heldPage) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			if args := c.Args(); c.Name() == "xrange" && args[2] == h.begin {
				select {
				case h.reached <- struct{}{}:
				default:
				}
				select {
				case <-h.goOn:
				case <-ctx.Done():
				}
			}
		}
		return next(ctx, cmds)
	}
}

// TestWhatIsReadAgainIsNotExactBeforeTheEnd has a stream lose the follower's
// cursor, so that it is read from the beginning: there, on its first page, is
// somebody's change, and on the second the one that the user has made since.
func TestWhatIsReadAgainIsNotExactBeforeTheEnd(t *testing.T) {
	const page = 200 // entries, the first of the second page among them
	server := redistest.Start(t)
	d, followers := newDesk(t, server.Client()), server.Client()
	mates := d.mates("u", page)
	d.announce("u", 5)
	for _, mate := range mates {
		d.announce(mate, 1)
	}
	d.announce("u", 6)
	last := d.mates("u", page+1)[page]
	d.announce(last, 1)
	entries := d.entries("u")
	held := &heldPage{begin: entries[page-1].ID, reached: make(chan struct{}, 1), goOn: make(chan struct{})}
	followers.AddHook(held)
	g := follow(t, followers)
	d.run("XDEL", d.stream("u"), entries[len(entries)-1].ID) // as another master does that lacks it
	d.announce(mates[0], 2)                                  // does not follow the cursor
	<-held.reached
	if g.knows("u", 5) {
		t.Error("a change is exact, and the next one has not been read")
	}
	if g.happened("away") == 0 {
		t.Error("the follower is live while it reads again")
	}
	close(held.goOn)
	g.learns(t, "u", 6)
	g.learns(t, mates[0], 2)
}
