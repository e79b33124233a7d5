package freqcap_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
)

// form is a way to keep what was charged in Redis, as one command per ask.
type form struct {
	name    string
	command func(user sendgate.UserID, id string, caps []sendgate.BoundCap) []any
}

// sortedSet is the plain form, against which the packed one is measured: for each
// cap a sorted set of its own, and a script that has each in its hand.
func sortedSet(bm *testing.B, client redis.UniversalClient, space *keyspace.Space) form {
	bm.Helper()
	source, err := os.ReadFile("testdata/sortedset.lua")
	if err != nil {
		bm.Fatal(err)
	}
	sha := client.ScriptLoad(context.Background(), string(source)).Val()
	return form{"set", func(user sendgate.UserID, id string, caps []sendgate.BoundCap) []any {
		args := []any{"evalsha", sha, len(caps)}
		for _, c := range caps {
			key := space.Caps("", string(user)) + "\x1fr" + fmt.Sprint(c.Window.Milliseconds())
			for i, f := range c.By {
				key += "\x1f" + string(f) + "\x1f" + c.Values[i]
			}
			args = append(args, key)
		}
		for _, c := range caps {
			args = append(args, c.Window.Milliseconds())
		}
		args = append(args, id, "reserve", len(caps))
		for i, c := range caps {
			args = append(args, i+1, c.Limit)
		}
		return args
	}}
}

func packed(client redis.UniversalClient, space *keyspace.Space) form {
	l := freqcap.New(client, space, newGuard())
	client.ScriptLoad(context.Background(), l.JudgeSource())
	return form{"record", l.JudgeCommand}
}

// pipelined sends one command for each of some users, in pipelines of 100.
func pipelined(bm *testing.B, client redis.UniversalClient, users int, command func(i int) []any) {
	bm.Helper()
	ctx := context.Background()
	for start := 0; start < users; start += 100 {
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := start; i < min(start+100, users); i++ {
				p.Do(ctx, command(i)...)
			}
			return nil
		})
		if err != nil {
			bm.Fatal(err)
		}
	}
}

func usedMemory(bm *testing.B, client redis.UniversalClient) (bytes float64) {
	bm.Helper()
	for _, line := range strings.Split(client.Info(context.Background(), "memory").Val(), "\r\n") {
		if _, err := fmt.Sscanf(line, "used_memory:%g", &bytes); err == nil {
			return bytes
		}
	}
	bm.Fatal("Redis does not say what memory it uses")
	return 0
}

// measured is what a form has come to.
type measured struct {
	form
	client  redis.UniversalClient
	perUser float64 // bytes
	scripts int
	took    time.Duration
	micros  float64 // of Redis' processor
}

const (
	measuredUsers   = 4000
	measuredEntries = 5
)

func measuredUser(i int) sendgate.UserID { return sendgate.UserID(fmt.Sprintf("user-%08d", i)) }

func measuredID(n, i int) string { return fmt.Sprintf("0198f3c2-7d1e-7c4a-9b1f-%04d%08d", n, i) }

// fill charges every user five times under each cap.
func (m *measured) fill(bm *testing.B, caps []sendgate.BoundCap) {
	bm.Helper()
	before := usedMemory(bm, m.client)
	for n := range measuredEntries {
		pipelined(bm, m.client, measuredUsers, func(i int) []any { return m.command(measuredUser(i), measuredID(n, i), caps) })
	}
	m.perUser = (usedMemory(bm, m.client) - before) / measuredUsers
}

// again asks once more for every user, by a new id.
func (m *measured) again(bm *testing.B, n int, caps []sendgate.BoundCap) {
	bm.Helper()
	micros, began := redisMicros(bm, m.client), time.Now()
	pipelined(bm, m.client, measuredUsers, func(i int) []any { return m.command(measuredUser(i), measuredID(measuredEntries+n, i), caps) })
	m.took += time.Since(began)
	m.micros += redisMicros(bm, m.client) - micros
	m.scripts += measuredUsers
}

// BenchmarkStorage compares a sorted set for each cap with the packed record:
// scripts a second, of users who have five entries under each of their caps and
// get one more, and what such a user costs in memory. The two take turns, so that
// whatever else the machine does meets both.
func BenchmarkStorage(bm *testing.B) {
	space, err := keyspace.New("sendgate", keyspace.DefaultPartitions)
	if err != nil {
		bm.Fatal(err)
	}
	for _, n := range []int{1, 3, 8} {
		bm.Run(fmt.Sprintf("caps=%d", n), func(bm *testing.B) {
			set, record := &measured{client: redistest.Start(bm).Client()}, &measured{client: redistest.Start(bm).Client()}
			set.form, record.form = sortedSet(bm, set.client, space), packed(record.client, space)
			caps := capsOf(n)
			set.fill(bm, caps)
			record.fill(bm, caps)
			for round := 0; bm.Loop(); round++ {
				set.again(bm, round, caps)
				record.again(bm, round, caps)
			}
			bm.ReportMetric(0, "ns/op")
			for _, m := range []*measured{set, record} {
				bm.ReportMetric(m.perUser, m.name+"-B/user")
				bm.ReportMetric(float64(m.scripts)/m.took.Seconds(), m.name+"-scripts/s")
				bm.ReportMetric(m.micros/float64(m.scripts), m.name+"-µs/script")
			}
			bm.ReportMetric(record.perUser/set.perUser, "memory-ratio")
			bm.ReportMetric(set.micros/record.micros, "throughput-ratio")
		})
	}
}

// BenchmarkBatch holds a list of 50 candidates of one user, each under the
// category's cap, the channel's and its own campaign's, against one candidate.
func BenchmarkBatch(bm *testing.B) {
	b := onRedisClock(bm, redistest.Start(bm).Client())
	ctx := context.Background()
	candidates := func(user sendgate.UserID, n, round int) []sendgate.CapAsk {
		asks := make([]sendgate.CapAsk, n)
		for i := range asks {
			asks[i] = ask(user, measuredID(round, i), "push", capOf(24*time.Hour, 20, "category", "marketing"),
				capOf(24*time.Hour, 10, "channel", "push"), capOf(24*time.Hour, 3, "campaign_id", fmt.Sprint("campaign-", i)))
		}
		return asks
	}
	var took [2]time.Duration
	var micros [2]float64
	round := 0
	for bm.Loop() {
		user := sendgate.UserID(fmt.Sprint("user-", round%500))
		for i, n := range []int{1, 50} {
			asks := candidates(user, n, round)
			if round%2 == 1 {
				looking(asks)
			}
			before, began := redisMicros(bm, b.client), time.Now()
			for _, a := range b.Judge(ctx, asks, 0) {
				if a.Err != nil {
					bm.Fatal(a.Err)
				}
			}
			took[i] += time.Since(began)
			micros[i] += redisMicros(bm, b.client) - before
		}
		round++
	}
	bm.ReportMetric(0, "ns/op")
	for i, name := range []string{"one", "50x3"} {
		bm.ReportMetric(float64(took[i].Microseconds())/float64(round), name+"-µs")
		bm.ReportMetric(micros[i]/float64(round), name+"-redis-µs")
	}
	bm.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
}

// BenchmarkSizes measures what users cost who are under many caps: five caps of
// five entries, and 30 campaigns by day and by week.
func BenchmarkSizes(bm *testing.B) {
	space, err := keyspace.New("sendgate", keyspace.DefaultPartitions)
	if err != nil {
		bm.Fatal(err)
	}
	const users = 1000
	five := make([][]sendgate.BoundCap, 5)
	for i := range five {
		five[i] = capsOf(5)
	}
	campaigns := make([][]sendgate.BoundCap, 30*3)
	for i := range campaigns {
		campaign := fmt.Sprint("campaign-", i%30)
		campaigns[i] = []sendgate.BoundCap{capOf(24*time.Hour, 3, "campaign_id", campaign), capOf(7*24*time.Hour, 10, "campaign_id", campaign)}
	}
	for name, charges := range map[string][][]sendgate.BoundCap{"caps=5x5": five, "campaigns=30x2x3": campaigns} {
		bm.Run(name, func(bm *testing.B) {
			m := &measured{client: redistest.Start(bm).Client()}
			m.form = packed(m.client, space)
			before := usedMemory(bm, m.client)
			for n, caps := range charges {
				pipelined(bm, m.client, users, func(i int) []any { return m.command(measuredUser(i), measuredID(n, i), caps) })
			}
			perUser := (usedMemory(bm, m.client) - before) / users
			micros, scripts := redisMicros(bm, m.client), 0
			for bm.Loop() { // by the same id: nothing is written
				pipelined(bm, m.client, users, func(i int) []any { return m.command(measuredUser(i), measuredID(0, i), charges[0]) })
				scripts += users
			}
			bm.ReportMetric(0, "ns/op")
			bm.ReportMetric(perUser, "B/user")
			bm.ReportMetric((redisMicros(bm, m.client)-micros)/float64(scripts), "redis-µs/script")
		})
	}
}
