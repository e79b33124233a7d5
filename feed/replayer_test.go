package feed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
)

// replay replays from a position, and lists what was applied.
func (d *desk) replay(from sendgate.Position) (applied []change, err error) {
	d.t.Helper()
	err = feed.NewReplayer(d.client, d.space).Replay(d.t.Context(), from, func(c sendgate.Consent, at sendgate.Place) {
		applied = append(applied, change{c, at})
	})
	return applied, err
}

// revisions lists which of a user's were applied.
func revisions(applied []change, user string) (revisions []int64) {
	for _, c := range applied {
		if c.User == sendgate.UserID(user) {
			revisions = append(revisions, c.Revision)
		}
	}
	return revisions
}

func TestAReplayIsWhatWasAnnouncedSince(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		d = d.of(16)
		for i := range 40 {
			d.announce(fmt.Sprint("u", i), 1)
		}
		position := d.position()
		if applied, err := d.replay(position); err != nil || len(applied) > 0 {
			t.Errorf("nothing was announced, and %v applied, %v", applied, err)
		}
		const many = 450 // of one partition, three pages with the marks between
		for revision := int64(1); revision <= many; revision++ {
			d.announce("many", revision)
			if revision%200 == 0 {
				d.position()
			}
		}
		for i := range 20 {
			d.announce(fmt.Sprint("u", i), 2)
		}
		applied, err := d.replay(position)
		if err != nil {
			t.Fatal(err)
		}
		if got := revisions(applied, "many"); len(got) != many || !slices.IsSorted(got) {
			t.Errorf("%d changes, in order: %v", len(got), slices.IsSorted(got))
		}
		for i := range 40 {
			want := "[2]"
			if i >= 20 {
				want = "[]"
			}
			if got := fmt.Sprint(revisions(applied, fmt.Sprint("u", i))); got != want {
				t.Errorf("u%d: %s, want %s", i, got, want)
			}
		}
		for _, c := range applied {
			if want := consentOf(string(c.User), c.Revision); fmt.Sprint(c.Consent) != fmt.Sprint(want) {
				t.Errorf("%+v, want %+v", c.Consent, want)
			}
			if d.standsThere(c); position.Covers(c.at) {
				t.Errorf("%s at %d is from before the position", c.User, c.Revision)
			}
		}
		if again, err := d.replay(position); err != nil || len(again) != len(applied) {
			t.Errorf("%d changes, and then %d, %v", len(applied), len(again), err)
		}
		if applied, err := d.replay(d.position()); err != nil || len(applied) > 0 {
			t.Errorf("the mark is the last entry, and %d were applied, %v", len(applied), err)
		}
	})
}

// Wherever the last page ends, nothing is left out and nothing comes twice.
func TestAReplayOfWholePages(t *testing.T) {
	d := newDesk(t, redistest.Start(t).Client())
	for _, n := range []int64{1, 198, 199, 200, 201, 398, 399, 400} {
		position := d.position()
		for revision := range n {
			d.announce("u", 1000*n+revision) // rising over all of them
		}
		applied, err := d.replay(position)
		if err != nil || int64(len(applied)) != n || applied[n-1].Revision != 1000*n+n-1 {
			t.Errorf("%d changes of %d, %v", len(applied), n, err)
		}
	}
}

func TestAReplayOfMarksThatFollowersLeft(t *testing.T) {
	d := newDesk(t, redistest.Start(t).Client())
	follow(t, d.client) // leaves a mark in every empty stream
	position := d.position()
	d.announce("u", 1)
	if applied, err := d.replay(position); err != nil || len(applied) != 1 {
		t.Errorf("%v, %v", applied, err)
	}
}

// losses are what can befall the stream of u after a mark and three changes.
var losses = map[string]func(d *desk, mark string){
	"trimmed":            func(d *desk, _ string) { d.run("XTRIM", d.stream("u"), "MAXLEN", 3) },
	"trimmed to nothing": func(d *desk, _ string) { d.run("XTRIM", d.stream("u"), "MAXLEN", 0) },
	"deleted":            func(d *desk, _ string) { d.run("DEL", d.stream("u")) },
	"deleted and refilled": func(d *desk, _ string) {
		d.run("DEL", d.stream("u"))
		d.announce("u", 100)
		d.announce("u", 101)
	},
	"deleted and marked": func(d *desk, _ string) {
		d.run("DEL", d.stream("u"))
		d.position()
	},
	"another position's mark there": func(d *desk, mark string) {
		d.run("DEL", d.stream("u"))
		d.run("XADD", d.stream("u"), mark, "m", "#another", "p", "0-0")
	},
	"a follower's mark there": func(d *desk, mark string) {
		d.run("DEL", d.stream("u"))
		d.run("XADD", d.stream("u"), mark, "m", "", "p", "0-0")
	},
	"a change there": func(d *desk, mark string) {
		d.run("DEL", d.stream("u"))
		d.run("XADD", d.stream("u"), mark, "m", `{"u":"u","r":1}`, "p", "0-0")
	},
	"the mark taken out":       func(d *desk, mark string) { d.run("XDEL", d.stream("u"), mark) },
	"a hole after the mark":    func(d *desk, _ string) { d.run("XDEL", d.stream("u"), d.lastOf("u", 3)) },
	"a hole between changes":   func(d *desk, _ string) { d.run("XDEL", d.stream("u"), d.lastOf("u", 2)) },
	"an entry of another kind": func(d *desk, _ string) { d.run("XADD", d.stream("u"), "*", "x", "y") },
	"an entry that follows nothing": func(d *desk, _ string) {
		d.run("XADD", d.stream("u"), "*", "m", `{"u":"u","r":1}`, "p", "0-0")
	},
	"a mark that does not follow": func(d *desk, mark string) { d.run("XADD", d.stream("u"), "*", "m", "#another", "p", mark) },
}

// lastOf is the id of the entry that is the nth from the end, from 1.
func (d *desk) lastOf(user string, nth int) string {
	all := d.entries(user)
	return all[len(all)-nth].ID
}

func TestAPositionIsLost(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		revision := int64(1)
		for name, lose := range losses {
			t.Run(name, func(t *testing.T) {
				d := (&desk{t: t, client: d.client}).of(8)
				d.run("DEL", d.stream("u"))
				position := d.position()
				for range 3 {
					d.announce("u", 1000*revision)
					revision++
				}
				if applied, err := d.replay(position); err != nil || len(applied) != 3 {
					t.Fatalf("before: %d changes, %v", len(applied), err)
				}
				d.run("DEL", d.space.Record("u"))
				lose(d, position.Offsets[d.space.Partition("u")].String())
				applied, err := d.replay(position)
				if !errors.Is(err, feed.ErrPositionLost) || !strings.Contains(err.Error(), "in 1 of the 8 ") || len(applied) > 0 {
					t.Errorf("%d changes, %v", len(applied), err)
				}
				if applied, err := d.replay(d.position()); err != nil || len(applied) > 0 { // a new one is as good as ever
					t.Errorf("from a new position %d changes, %v", len(applied), err)
				}
			})
		}
	})
}

func (d *desk) flush() {
	d.t.Helper()
	if cluster, ok := d.client.(*redis.ClusterClient); ok {
		if err := cluster.ForEachMaster(d.t.Context(), func(ctx context.Context, node *redis.Client) error {
			return node.FlushAll(ctx).Err()
		}); err != nil {
			d.t.Fatal(err)
		}
		return
	}
	d.run("FLUSHALL")
}

func TestARedisThatIsEmptiedWhileItIsReplayed(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		position := d.position()
		for revision := range int64(450) {
			d.announce("u", revision+1)
		}
		n := 0
		err := feed.NewReplayer(d.client, d.space).Replay(t.Context(), position, func(sendgate.Consent, sendgate.Place) {
			if n++; n == 1 {
				d.flush()
				d.announce("u", 500)
			}
		})
		if !errors.Is(err, feed.ErrPositionLost) || n == 0 || n >= 450 {
			t.Errorf("%d changes, %v", n, err)
		}
		if _, err := d.replay(position); !errors.Is(err, feed.ErrPositionLost) || !strings.Contains(err.Error(), "in 256 of the 256") {
			t.Error(err)
		}
	})
}

// A stream is trimmed past where the replay is.
func TestAStreamThatIsTrimmedWhileItIsReplayed(t *testing.T) {
	d := newDesk(t, redistest.Start(t).Client())
	position := d.position()
	for revision := range int64(450) {
		d.announce("u", revision+1)
	}
	n := 0
	err := feed.NewReplayer(d.client, d.space).Replay(t.Context(), position, func(sendgate.Consent, sendgate.Place) {
		if n++; n == 1 {
			d.run("XTRIM", d.stream("u"), "MAXLEN", 100)
		}
	})
	if !errors.Is(err, feed.ErrPositionLost) || n == 0 || n >= 450 {
		t.Errorf("%d changes, %v", n, err)
	}
}

func TestWhatCannotBeReplayed(t *testing.T) {
	server := redistest.Start(t)
	d := newDesk(t, server.Client())
	position := d.position()
	offsets := position.Offsets
	for name, wrong := range map[string]sendgate.Position{
		"nothing":       {},
		"no token":      {Offsets: offsets},
		"no partitions": {Token: position.Token},
		"one less":      {Token: position.Token, Offsets: offsets[1:]},
		"one more":      {Token: position.Token, Offsets: append(slices.Clone(offsets), offsets[0])},
	} {
		if _, err := d.replay(wrong); err == nil || errors.Is(err, feed.ErrPositionLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, lost := range map[string]sendgate.Position{
		"of nowhere":    {Token: position.Token, Offsets: make([]sendgate.Offset, partitions)},
		"other's token": {Token: "x", Offsets: offsets},
	} {
		if _, err := d.replay(lost); !errors.Is(err, feed.ErrPositionLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	nothing := func(sendgate.Consent, sendgate.Place) { t.Error("applied") }
	if err := feed.NewReplayer(d.client, d.space).Replay(ended, position, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	last := offsets[d.space.Partition("u")].String()
	d.run("XADD", d.stream("u"), "*", "m", `{"u":"u","r":1,"s":"what?"}`, "p", last)
	if _, err := d.replay(position); err == nil || errors.Is(err, feed.ErrPositionLost) || !strings.Contains(err.Error(), d.lastOf("u", 1)) {
		t.Errorf("a message that is not understood: %v", err)
	}
	server.Kill()
	if _, err := d.replay(position); err == nil || errors.Is(err, feed.ErrPositionLost) {
		t.Errorf("without a Redis: %v", err)
	}
}
