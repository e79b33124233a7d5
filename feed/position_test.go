package feed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
)

func (d *desk) position() sendgate.Position {
	d.t.Helper()
	position, err := d.Mark(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return position
}

func (d *desk) run(command ...any) {
	d.t.Helper()
	if err := d.client.Do(d.t.Context(), command...).Err(); err != nil {
		d.t.Fatalf("%v: %v", command, err)
	}
}

// all is everything that a partition's stream holds.
func (d *desk) all(partition int) []redis.XMessage {
	d.t.Helper()
	all, err := d.client.XRange(d.t.Context(), d.space.Stream(partition), "-", "+").Result()
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// chained says that each entry of every stream names the one before it, and
// that a stream holds the position's mark, and nothing else with its token.
func (d *desk) chained(position sendgate.Position) {
	d.t.Helper()
	if len(position.Offsets) != d.space.Partitions() || position.Token == "" {
		d.t.Fatalf("a position of %d partitions, %q", len(position.Offsets), position.Token)
	}
	for p, at := range position.Offsets {
		previous, marks := "0-0", 0
		for _, e := range d.all(p) {
			if e.Values["p"] != previous {
				d.t.Errorf("partition %d: %s follows %v, not %s", p, e.ID, e.Values["p"], previous)
			}
			previous = e.ID
			if e.Values["m"] == "#"+position.Token {
				if marks++; e.ID != at.String() {
					d.t.Errorf("partition %d: the mark is %s, not %s", p, e.ID, at)
				}
			}
		}
		if marks != 1 {
			d.t.Errorf("partition %d: %d marks", p, marks)
		}
	}
}

func TestAMarkStandsInEveryStream(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		d = d.of(64)
		d.announce("before", 1)
		var positions [4]sendgate.Position
		var marking sync.WaitGroup
		for i := range positions {
			marking.Go(func() {
				position, err := d.Mark(t.Context())
				if err != nil {
					t.Error(err)
				}
				positions[i] = position
			})
		}
		marking.Go(func() {
			for i := range 50 {
				d.announce(fmt.Sprint("u", i), 1)
			}
		})
		marking.Wait()
		tokens := map[string]bool{}
		for _, position := range positions {
			d.chained(position)
			tokens[position.Token] = true
		}
		if len(tokens) != len(positions) {
			t.Errorf("tokens %v", tokens)
		}
	})
}

func TestAMarkIsPublishedLikeAChange(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		d = d.of(64)
		sub := d.client.Subscribe(t.Context(), d.space.Channel())
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.announce("u", 1)
		if _, err := sub.ReceiveMessage(t.Context()); err != nil { // in a cluster it may be on its way for a while
			t.Fatal(err)
		}
		position := d.position()
		want := map[string]bool{}
		for p, at := range position.Offsets {
			previous := "0-0"
			if p == d.space.Partition("u") {
				previous = d.entries("u")[0].ID
			}
			want[fmt.Sprintf("%d %s %s #%s", p, at, previous, position.Token)] = true
		}
		for range position.Offsets {
			m, err := sub.ReceiveMessage(t.Context())
			if err != nil || !want[m.Payload] {
				t.Fatalf("published %v, %v", m, err)
			}
			delete(want, m.Payload)
		}
	})
}

func TestAPartitionThatCannotBeMarked(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		stream := d.space.Stream(200)
		d.run("SET", stream, "no stream")
		if position, err := d.Mark(t.Context()); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || len(position.Offsets) > 0 {
			t.Errorf("%+v, %v", position, err)
		}
		if n, err := d.Added(t.Context()); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%d, %v", n, err)
		}
		d.run("DEL", stream)
		d.chained(d.position())

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Mark(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		if _, err := d.Added(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

func TestAClusterThatHasLostAMaster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	d := newDesk(t, cluster.Client())
	position := d.position()
	cluster.Masters()[1].Kill()
	if _, err := d.Mark(t.Context()); err == nil {
		t.Error("every partition was marked")
	}
	if n, err := d.Added(t.Context()); err == nil {
		t.Errorf("%d entries were counted", n)
	}
	if applied, err := d.replay(position); err == nil || errors.Is(err, feed.ErrPositionLost) {
		t.Errorf("%d changes, %v", len(applied), err)
	}
}

// A Redis that has been restarted, or told so, has forgotten the scripts.
func TestMarkNeedsNoScriptToBeKnown(t *testing.T) {
	d := newDesk(t, redistest.Start(t).Client())
	d.position()
	d.run("SCRIPT", "FLUSH")
	d.chained(d.position())
}

func TestAdded(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		count := func(want int64) {
			t.Helper()
			if n, err := d.Added(t.Context()); err != nil || n != want {
				t.Errorf("%d entries, %v; want %d", n, err, want)
			}
		}
		count(0)
		for i := range 50 {
			d.announce(fmt.Sprint("u", i), 1)
		}
		count(50)
		d.position()
		count(50 + partitions)
		d.announce("u0", 2)
		d.run("XTRIM", d.stream("u0"), "MAXLEN", 1)
		if !strings.HasSuffix(t.Name(), "embedded") {
			count(51 + partitions)
			return
		}
		held := int64(0) // it does not count what was added
		for p := range partitions {
			held += int64(len(d.all(p)))
		}
		if count(held); held >= 51+partitions {
			t.Errorf("the streams hold %d entries", held)
		}
	})
}

// The most partitions that there can be take several round trips. The embedded
// Redis is not for so many.
func TestAsManyPartitionsAsThereCanBe(t *testing.T) {
	for _, engine := range []string{"real", "cluster"} {
		t.Run(engine, func(t *testing.T) {
			d := newDesk(t, engines[engine](t)).of(keyspace.MaxPartitions)
			position := d.position()
			if len(position.Offsets) != keyspace.MaxPartitions {
				t.Fatalf("a position of %d partitions", len(position.Offsets))
			}
			for i := range 100 {
				d.announce(fmt.Sprint("u", i), 1)
			}
			if applied, err := d.replay(position); err != nil || len(applied) != 100 {
				t.Errorf("%d changes, %v", len(applied), err)
			}
			if n, err := d.Added(t.Context()); err != nil || n != keyspace.MaxPartitions+100 {
				t.Errorf("%d entries, %v", n, err)
			}
		})
	}
}
