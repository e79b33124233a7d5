package freqcap_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
)

// shapes are the caps that histories use; each has its own log. The third is
// the second with its fields turned round.
var shapes = []struct {
	log    string
	window time.Duration
	by     []string
}{
	{"all", time.Second, nil},
	{"both", 3 * time.Second, []string{"category", "c", "channel", "push"}},
	{"both", 3 * time.Second, []string{"channel", "push", "category", "c"}},
	{"long", 10 * time.Second, nil},
	{"campaign", time.Second, []string{"campaign_id", "all"}},
}

// testHistories holds arbitrary histories against the oracle: lists of asks of
// several users, with ids repeated and limits changed, while the clock goes
// forward and back. Every member of every answer is compared.
func testHistories(t *testing.T, client redis.UniversalClient) {
	rapid.Check(t, func(r *rapid.T) { history(t, r, client) })
}

var users = []sendgate.UserID{"u", "{v}", "w:"}

func history(t *testing.T, r *rapid.T, client redis.UniversalClient) {
	b, model := onTestClock(t, client), oracle{}
	now := int64(1_700_000_000_000) // of today's size, which Lua writes as 1.7e+12
	var told []string
	for range rapid.IntRange(1, 12).Draw(r, "steps") {
		now += rapid.SampledFrom([]int64{0, 0, 1, 10, 499, 500, 999, 1000, 1001, 3000, 12_000, -1, -500, -1000, -4000}).Draw(r, "passes")
		for _, user := range users {
			b.at(user, now)
		}
		reserve := rapid.IntRange(0, 3).Draw(r, "reserve") > 0
		var asks []sendgate.CapAsk
		var want []sendgate.CapAnswer
		for range rapid.IntRange(1, 6).Draw(r, "asks") {
			ask, logs := drawAsk(r)
			asks = append(asks, ask)
			for i := range logs {
				logs[i] = string(ask.User) + " " + logs[i]
			}
			want = append(want, model.judge(now, ask, logs, reserve))
		}
		told = append(told, fmt.Sprintf("at %d, reserve %t: %+v", now, reserve, asks))
		for i := range asks {
			asks[i].Look = !reserve
		}
		got := b.Judge(context.Background(), asks, 0)
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("%s\n(-want +got):\n%s", strings.Join(told, "\n"), diff)
		}
	}
}

func drawAsk(r *rapid.T) (ask sendgate.CapAsk, logs []string) {
	ask.User = rapid.SampledFrom(users).Draw(r, "user")
	ask.NotificationID = fmt.Sprint("n", rapid.IntRange(0, 9).Draw(r, "id"))
	for range rapid.IntRange(1, 4).Draw(r, "caps") {
		shape := rapid.SampledFrom(shapes).Draw(r, "cap")
		logs = append(logs, shape.log)
		ask.Caps = append(ask.Caps, capOf(shape.window, rapid.IntRange(0, 5).Draw(r, "limit"), shape.by...))
	}
	return ask, logs
}
