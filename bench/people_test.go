package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/quiet"
)

// What a check is about. The topic has quiet hours and three caps.
const (
	topic     = "promotions"
	channel   = "push"
	campaigns = 4
)

// people are numbered users, of whom every other one is opted out. They are
// asked about as often as Zipf's law has it.
type people struct{ n int }

// zipfS and zipfV shape how often people are asked about: the k-th most asked
// about (v+k)^-s times as often as a factor.
const (
	zipfS = 1.1
	zipfV = 10
)

func user(i int) string { return "u_" + strconv.Itoa(i) }

func optedOut(i int) bool { return i%2 == 1 }

// preferences are those of everybody who is in, and of everybody who is out.
// Their quiet hours are half a day away.
func preferences(out bool, now time.Time) (*sendgate.Preferences, error) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		return nil, err
	}
	there := now.In(zone).Add(12 * time.Hour)
	hours, err := quiet.NewWindow(there.Format("15:04"), there.Add(time.Hour).Format("15:04"), nil)
	if err != nil {
		return nil, err
	}
	return &sendgate.Preferences{
		Revision: 1, UpdatedAt: now.Add(-24 * time.Hour).UTC().Truncate(time.Millisecond),
		Settings:   sendgate.Settings{{Topic: topic, Channel: channel}: !out, {Topic: "newsletter", Channel: "email"}: true},
		QuietHours: &sendgate.QuietHours{Enabled: true, Window: &hours, Timezone: zone.String()},
	}, nil
}

// Scan is that of a store which holds the people who are out: those who are in
// add nothing to a filter.
func (p people) Scan(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
	out := sendgate.Settings{{Topic: topic, Channel: channel}: false}
	for i := 1 + 2*segment; i < p.n; i += 2 * segments {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := each(&prefs.Record{User: sendgate.UserID(user(i)), Preferences: sendgate.Preferences{Revision: 1, Settings: out}}); err != nil {
			return err
		}
	}
	return nil
}

// crowd makes up checks about people, of whom a share has opted out. It is safe
// for concurrent use.
type crowd struct {
	out int // of a hundred

	mu   sync.Mutex
	rand *rand.Rand
	zipf *rand.Zipf
	next uint64
}

func (p people) crowd(out int) *crowd {
	r := rand.New(rand.NewPCG(uint64(p.n), uint64(out)))
	return &crowd{out: out, rand: r, zipf: rand.NewZipf(r, zipfS, zipfV, uint64(p.n/2-1)), next: uint64(time.Now().UnixMicro())}
}

// draw is the number of a user, of a notification and of a campaign.
func (c *crowd) draw() (user int, notification uint64, campaign int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	user = 2 * int(c.zipf.Uint64())
	if c.rand.IntN(100) < c.out {
		user++
	}
	c.next++
	return user, c.next, c.rand.IntN(campaigns)
}

// check is the body of one check.
func (c *crowd) check() []byte { return c.append(nil) }

func (c *crowd) append(b []byte) []byte {
	user, notification, campaign := c.draw()
	return fmt.Appendf(b, `{"notification_id":"n_%d","user_id":"u_%d","topic":%q,"channel":%q,"campaign_id":"c%d"}`, notification, user, topic, channel, campaign)
}

// batch is the body of a hundred checks.
func (c *crowd) batch() []byte {
	b := []byte(`{"checks":[`)
	for i := range batchSize {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.append(b)
	}
	return append(b, `]}`...)
}

const batchSize = 100
