package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/redisconn"
)

// overlay counts the gaps that it is told of.
type overlay struct {
	*bloom.Overlay
	gaps atomic.Int64
}

func (o *overlay) Gap() {
	o.gaps.Add(1)
	o.Overlay.Gap()
}

// desk announces changes, and follows what is announced.
type desk struct {
	*feed.Publisher
	space *keyspace.Space
	sink  *overlay
}

// newDesk has a follower of one client hear what another announces.
func newDesk(t *testing.T, announces, follows redis.UniversalClient) *desk {
	t.Helper()
	space, err := keyspace.New("t", 8)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{feed.NewPublisher(announces, space, sendgate.SystemClock), space, &overlay{Overlay: bloom.NewOverlay(100)}}
	follower := feed.NewFollower(feed.FollowerOptions{
		Client: follows, Space: space, Sink: d.sink, Log: slog.New(slog.DiscardHandler), Lag: func(time.Duration) {}, Now: time.Now,
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follower.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	redistest.Until(t, "the stream is followed", d.sink.Live)
	return d
}

func (d *desk) announce(t *testing.T, user string) {
	t.Helper()
	redistest.Until(t, "a change of "+user+" is announced", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), generous)
		defer cancel()
		readAt, err := d.Clock(ctx, sendgate.UserID(user))
		if err != nil {
			return false
		}
		state := sendgate.Announcement{Consent: sendgate.Consent{User: sendgate.UserID(user), Revision: 1}, Record: []byte("body"), ReadAt: readAt}
		return d.Announce(ctx, []sendgate.Announcement{state})[0] == nil
	})
}

func (d *desk) knows(user string) func() bool {
	return func() bool {
		_, exact, ok := d.sink.Consent(sendgate.UserID(user))
		return ok && exact
	}
}

// TestSentinelFailover has a master that has lost touch with its replica be
// killed: commands, announcements and the follower move to the promoted
// replica, and what it lacks shows as a gap.
func TestSentinelFailover(t *testing.T) {
	s := redistest.StartSentinels(t, "")
	client := s.Client()
	if err := client.Set(t.Context(), "k", "before", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := s.Master.Client().Get(t.Context(), "k").Val(); got != "before" {
		t.Errorf("the master holds %q", got)
	}
	d := newDesk(t, s.Client(), s.Client())
	d.announce(t, "early")
	redistest.Until(t, "the change is known", d.knows("early"))
	if n := d.sink.gaps.Load(); n != 1 { // the one at the beginning
		t.Fatalf("%d gaps", n)
	}
	loseTouch(t, s)
	d.announce(t, "lost")
	redistest.Until(t, "the change is known", d.knows("lost"))

	s.Failover()
	began := time.Now()
	redistest.Until(t, "the client has moved", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return client.Set(ctx, "k", "after", 0).Err() == nil
	})
	t.Logf("commands work %v after the promotion", time.Since(began).Round(time.Millisecond))
	if got := s.Replica.Client().Get(t.Context(), "k").Val(); got != "after" {
		t.Errorf("the promoted replica holds %q", got)
	}
	d.announce(t, "late")
	redistest.Until(t, "what was announced after the failover is known", d.knows("late"))
	redistest.Until(t, "the loss is a gap", func() bool { return d.sink.gaps.Load() > 1 })
	if d.knows("lost")() {
		t.Error("what the promoted replica lacks is exact")
	}
}

// loseTouch has a replica be refused by its master from now on.
func loseTouch(t *testing.T, s *redistest.Sentinels) {
	t.Helper()
	replica, master := s.Replica.Client(), s.Master.Client()
	for name, value := range map[string]string{"masteruser": "nobody", "masterauth": "wrong"} {
		if err := replica.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := master.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	redistest.Until(t, "the replica has lost its master", func() bool {
		info, err := replica.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:down")
	})
}

// TestSentinelsThatCannotHelp says why there is no master.
func TestSentinelsThatCannotHelp(t *testing.T) {
	s := redistest.StartSentinels(t, "secret")
	for name, c := range map[string]struct {
		change func(*redisconn.Options)
		want   string
	}{
		"the right password": {func(*redisconn.Options) {}, ""},
		"no password":        {func(o *redisconn.Options) { o.SentinelPassword = "" }, "NOAUTH"},
		"a wrong password":   {func(o *redisconn.Options) { o.SentinelPassword = "wrong" }, "WRONGPASS"},
		"an unknown master":  {func(o *redisconn.Options) { o.MasterName = "other" }, `no Sentinel that answers knows a master called "other"`},
		"nobody there":       {func(o *redisconn.Options) { o.Addrs = []string{"127.0.0.1:1"} }, "refused"},
		"one of them there":  {func(o *redisconn.Options) { o.Addrs = append([]string{"127.0.0.1:1"}, o.Addrs[0]) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := s.Options()
			o.SentinelPassword = "secret"
			c.change(&o)
			within := goleak.IgnoreCurrent()
			client := open(t, o)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := client.Get(ctx, "k").Err()
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			redistest.Until(t, "nothing is left running", func() bool { return goleak.Find(within) == nil })
			if c.want == "" && !errors.Is(err, redis.Nil) {
				t.Errorf("%v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v does not say %q", err, c.want)
			}
			if got := redisconn.Answered(err); got != (c.want == "") {
				t.Errorf("an answer: %v: %v", got, err)
			}
		})
	}
}

// TestAReplicaIsNotAsked has a Sentinel name a Redis that is a replica.
func TestAReplicaIsNotAsked(t *testing.T) {
	master := redistest.Start(t)
	_, port, _ := strings.Cut(master.Addr(), ":")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", port)
	_, port, _ = strings.Cut(replica.Addr(), ":")
	sentinel := startFake(t, func(command string) (string, bool) {
		switch command {
		case "sentinel":
			return fmt.Sprintf("*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", len(port), port), false
		case "role":
			return "*1\r\n$8\r\nsentinel\r\n", false
		}
		return "-ERR unknown command\r\n", false
	})
	client := open(t, redisconn.Options{Mode: "sentinel", MasterName: "m", Addrs: []string{sentinel.addr()}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := client.Get(ctx, "k").Err(); err == nil || redisconn.Answered(err) || !strings.Contains(err.Error(), "is a replica") {
		t.Errorf("%v", err)
	}
}

// TestASentinelThatIsGone falls silent together with the master: others are
// asked, although the connection to it stands.
func TestASentinelThatIsGone(t *testing.T) {
	first, second := redistest.Start(t), redistest.Start(t)
	type watcher struct {
		*fake
		silent atomic.Bool
	}
	var moved atomic.Bool
	start := func() *watcher {
		w := &watcher{}
		w.fake = startFake(t, func(command string) (string, bool) {
			master := first
			if moved.Load() {
				master = second
			}
			_, port, _ := strings.Cut(master.Addr(), ":")
			switch {
			case w.silent.Load():
				return "", false
			case command == "sentinel":
				return fmt.Sprintf("*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", len(port), port), false
			case command == "role":
				return "*1\r\n$8\r\nsentinel\r\n", false
			}
			return "-ERR unknown command\r\n", false
		})
		return w
	}
	watchers := []*watcher{start(), start()}
	client := open(t, redisconn.Options{Mode: "sentinel", MasterName: "m", Addrs: []string{watchers[0].addr(), watchers[1].addr()}})
	set := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), generous)
		defer cancel()
		return client.Set(ctx, "k", "v", 0).Err() == nil
	}
	redistest.Until(t, "the client reaches the master", set)
	// The client listens to one of them.
	redistest.Until(t, "one is chosen", func() bool { return watchers[0].count("subscribe")+watchers[1].count("subscribe") > 0 })
	for _, w := range watchers {
		w.silent.Store(w.count("subscribe") > 0)
	}
	moved.Store(true)
	first.Kill()
	began := time.Now()
	redistest.Until(t, "the client reaches the other master", set)
	t.Logf("after %v", time.Since(began).Round(time.Millisecond))
}
