package feed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
)

func TestAFilterIsAnnounced(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		one, other := follow(t, d.client), follow(t, d.client)
		if err := d.AnnounceSnapshot(t.Context(), 42); err != nil {
			t.Fatal(err)
		}
		for _, g := range []*gate{one, other} {
			redistest.Until(t, "the filter is heard of", func() bool { return g.happened("filter 42") == 1 })
		}
		for _, generation := range []int64{0, -1} {
			if err := d.AnnounceSnapshot(t.Context(), generation); err == nil {
				t.Errorf("generation %d was announced", generation)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.AnnounceSnapshot(ended, 43); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

// What is no announcement of a filter is logged, and does no harm.
func TestNonsenseAboutAFilterIsLogged(t *testing.T) {
	r := newGapRig(t)
	nonsense := []string{"filter x", "filter -1", "filter ", "filter 0", "filter 042", "filter", "filter 9223372036854775808"}
	for _, payload := range nonsense {
		r.run("PUBLISH", r.space.Channel(), payload)
	}
	r.run("PUBLISH", r.space.Channel(), "filter 7")
	redistest.Until(t, "the filter is heard of", func() bool { return r.g.happened("filter 7") == 1 })
	if n := r.g.logged("an announcement is not understood"); n != len(nonsense) {
		t.Errorf("%d of %d are in the log", n, len(nonsense))
	}
	r.announce("u", 2)
	r.g.learns(t, "u", 2)
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	if got := fmt.Sprint(r.g.events); got != "[gap live filter 7]" {
		t.Errorf("the follower said %s", got)
	}
}

// Nobody has to want to know of filters.
func TestAFilterThatNobodyWantsToKnowOf(t *testing.T) {
	d := newDesk(t, redistest.Start(t).Client())
	g := &gate{Overlay: bloom.NewOverlay(10)}
	f := feed.NewFollower(feed.FollowerOptions{
		Client: d.client, Space: d.space, Sink: g, Log: slog.New(slog.DiscardHandler), Now: sendgate.SystemClock, Lag: func(time.Duration) {},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	defer running.Wait()
	defer cancel()
	redistest.Until(t, "the follower is live", g.Live)
	if err := d.AnnounceSnapshot(t.Context(), 42); err != nil {
		t.Fatal(err)
	}
	d.announce("u", 1)
	g.learns(t, "u", 1)
}

// A follower takes a position's marks as they come, as it takes those that it
// finds when it comes back.
func TestAFollowerTakesMarks(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		g := follow(t, d.client)
		d.announce("u", 1)
		d.position()
		d.announce("u", 2)
		d.position()
		d.announce("u", 3)
		g.learns(t, "u", 3)
		for i := range 40 {
			d.announce(fmt.Sprint("u", i), 1)
			g.learns(t, fmt.Sprint("u", i), 1)
		}
		if got := fmt.Sprint(g.of("u")); got != "[1 2 3]" || g.happened("gap") != 1 || g.happened("away") != 0 {
			t.Errorf("heard %s, %d gaps, away %d times", got, g.happened("gap"), g.happened("away"))
		}
		if n := g.logged("level=ERROR"); n != 0 {
			t.Errorf("%d errors are in the log", n)
		}
	})
}

func TestMarksWhileAFollowerIsAway(t *testing.T) {
	r := newGapRig(t)
	r.whileAway(t, func() {
		r.position()
		r.announce("u", 2)
		r.position()
	})
	r.g.learns(t, "u", 2)
	r.whileAway(t, func() { r.position() }) // its cursors are marks now
	r.announce("u", 3)
	r.g.learns(t, "u", 3)
	if got := fmt.Sprint(r.g.of("u")); got != "[1 2 3]" || r.g.happened("gap") != 1 {
		t.Errorf("heard %s, %d gaps", got, r.g.happened("gap"))
	}
}
