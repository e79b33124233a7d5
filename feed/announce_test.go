package feed_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
)

const partitions = 256

var engines = map[string]func(*testing.T) redis.UniversalClient{
	"real":     func(t *testing.T) redis.UniversalClient { return redistest.Start(t).Client() },
	"embedded": func(t *testing.T) redis.UniversalClient { return redistest.Embedded(t) },
	"cluster":  func(t *testing.T) redis.UniversalClient { return redistest.StartCluster(t).Client() },
}

func newSpace(t *testing.T) *keyspace.Space {
	t.Helper()
	s, err := keyspace.New(keyspace.DefaultNamespace, partitions)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// desk announces for a test, and looks at what is in Redis then.
type desk struct {
	t      *testing.T
	client redis.UniversalClient
	space  *keyspace.Space
	*feed.Publisher
}

func newDesk(t *testing.T, client redis.UniversalClient) *desk {
	s := newSpace(t)
	return &desk{t, client, s, feed.NewPublisher(client, s, sendgate.SystemClock)}
}

// of is a desk for another number of partitions.
func (d *desk) of(partitions int) *desk {
	d.t.Helper()
	s, err := keyspace.New("other", partitions)
	if err != nil {
		d.t.Fatal(err)
	}
	return &desk{d.t, d.client, s, feed.NewPublisher(d.client, s, sendgate.SystemClock)}
}

func consentOf(user string, revision int64) sendgate.Consent {
	return sendgate.Consent{
		User: sendgate.UserID(user), Revision: revision, Global: revision%2 == 0,
		Settings: sendgate.Settings{{Topic: "promotions", Channel: "push"}: revision%3 == 0},
	}
}

// tell announces one state.
func (d *desk) tell(c sendgate.Consent, readAt time.Time) error {
	return d.Announce(d.t.Context(), []sendgate.Announcement{{Consent: c, Record: []byte("body"), ReadAt: readAt}})[0]
}

func (d *desk) announce(user string, revision int64) {
	d.t.Helper()
	readAt, err := d.Clock(d.t.Context(), sendgate.UserID(user))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.tell(consentOf(user, revision), readAt); err != nil {
		d.t.Fatalf("%s at %d: %v", user, revision, err)
	}
}

func (d *desk) stream(user string) string {
	return d.space.Stream(d.space.Partition(sendgate.UserID(user)))
}

// entries are what a user's stream holds, but for marks.
func (d *desk) entries(user string) []redis.XMessage {
	d.t.Helper()
	all, err := d.client.XRange(d.t.Context(), d.stream(user), "-", "+").Result()
	if err != nil {
		d.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(m redis.XMessage) bool {
		text, ok := m.Values["m"].(string)
		return ok && (text == "" || text[0] == '#')
	})
}

// standsThere says that a change is in its user's stream, where it was said to
// be.
func (d *desk) standsThere(c change) {
	d.t.Helper()
	id := c.at.Offset.String()
	there, err := d.client.XRange(d.t.Context(), d.space.Stream(c.at.Partition), id, id).Result()
	begins := fmt.Sprintf(`{"u":%q,"r":%d,`, c.User, c.Revision)
	if err != nil || len(there) != 1 || !strings.HasPrefix(there[0].Values["m"].(string), begins) || c.at.Partition != d.space.Partition(c.User) {
		d.t.Errorf("%s at %d stands at %+v: %v, %v", c.User, c.Revision, c.at, there, err)
	}
}

func (d *desk) holds(user, value string, entries int) {
	d.t.Helper()
	got, err := d.client.Get(d.t.Context(), d.space.Record(sendgate.UserID(user))).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		d.t.Fatal(err)
	}
	if n := len(d.entries(user)); got != value || n != entries {
		d.t.Errorf("%s has %q and %d entries, want %q and %d", user, got, n, value, entries)
	}
}

func (d *desk) put(user, value string) {
	d.t.Helper()
	if err := d.client.Set(d.t.Context(), d.space.Record(sendgate.UserID(user)), value, time.Minute).Err(); err != nil {
		d.t.Fatal(err)
	}
}

func onEngines(t *testing.T, test func(t *testing.T, d *desk)) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) { test(t, newDesk(t, open(t))) })
	}
}

func TestARecordIsSetByItsRevision(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		d.announce("{u}:1", 5)
		d.holds("{u}:1", "R5 body", 1)
		d.announce("{u}:1", 4) // older: nothing is done, and that is no error
		d.holds("{u}:1", "R5 body", 1)
		d.announce("{u}:1", 5) // equal: it may not have been heard
		d.holds("{u}:1", "R5 body", 2)
		d.announce("{u}:1", 10) // by number, not by text
		d.holds("{u}:1", "R10 body", 3)
		for what, value := range map[string]string{"lease": "Ltoken", "nonsense": "?", "no-revision": "R x", "empty": ""} {
			d.put(what, value)
			before := len(d.entries(what))
			d.announce(what, 1)
			d.holds(what, "R1 body", before+1)
		}
		ttl, err := d.client.PTTL(t.Context(), d.space.Record("{u}:1")).Result()
		if err != nil || ttl < keyspace.MaxRecordTTL/2 || ttl > keyspace.MaxRecordTTL {
			t.Errorf("the record lasts %v, %v", ttl, err)
		}
	})
}

func TestEveryEntryNamesTheOneBefore(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		sub := d.client.Subscribe(t.Context(), d.space.Channel())
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		for revision := range int64(5) {
			d.announce("u", revision+1)
		}
		previous := "0-0"
		for i, e := range d.entries("u") {
			if e.Values["p"] != previous {
				t.Errorf("entry %d, %s, names %v, want %s", i, e.ID, e.Values["p"], previous)
			}
			previous = e.ID
			message, err := sub.ReceiveMessage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("%d %s %s %s", d.space.Partition("u"), e.ID, e.Values["p"], e.Values["m"]); message.Payload != want {
				t.Errorf("published %q, want %q", message.Payload, want)
			}
		}
	})
}

func TestAStaleReadingIsRefused(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		d.announce("u", 1)
		now, err := d.Clock(t.Context(), "u")
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Since(now); off < -time.Minute || off > time.Minute {
			t.Errorf("Redis on this machine says %v", now)
		}
		for _, off := range []time.Duration{-time.Hour, -11 * time.Second, 11 * time.Second, time.Hour, -time.Duration(now.UnixNano())} {
			if err := d.tell(consentOf("u", 2), now.Add(off)); !errors.Is(err, feed.ErrStale) {
				t.Errorf("read %v ago: %v", -off, err)
			}
		}
		d.holds("u", "R1 body", 1)
		if err := d.tell(consentOf("u", 2), now.Add(-5*time.Second)); err != nil {
			t.Error(err)
		}
		d.holds("u", "R2 body", 2)
	})
}

func TestTheStreamIsBounded(t *testing.T) {
	onEngines(t, func(t *testing.T, d *desk) {
		for range 24 {
			if _, err := d.client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				for range 500 {
					p.XAdd(t.Context(), &redis.XAddArgs{Stream: d.stream("u"), Values: []string{"m", "{}", "p", "0-0"}})
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		d.announce("u", 1)
		if n, err := d.client.XLen(t.Context(), d.stream("u")).Result(); err != nil || n < 10_000 || n > 10_200 {
			t.Errorf("%d entries are kept, %v", n, err)
		}
	})
}

func TestWhatCannotBeAnnounced(t *testing.T) {
	d := newDesk(t, redistest.Embedded(t))
	for _, c := range []sendgate.Consent{{User: "u"}, {User: "a\xff", Revision: 1}} {
		if err := d.tell(c, time.Now()); err == nil {
			t.Errorf("%+v was announced", c)
		}
	}
	if err := d.client.Set(t.Context(), d.stream("u"), "no stream", 0).Err(); err != nil {
		t.Fatal(err)
	}
	now, err := d.Clock(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.tell(consentOf("u", 1), now); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("to no stream: %v", err)
	}
}
