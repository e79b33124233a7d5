package bench

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/internal/redistest"
)

// minimal is the least that a frequency cap in Redis can be: a sorted set, one
// cap, nothing else.
const minimal = `local now = redis.call('TIME')
local at = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at - ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], at, ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`

// floor is a Redis of its own that runs nothing but the minimal script, asked by
// redis-benchmark.
type floor struct {
	server *redistest.Server
	client redis.UniversalClient
	sha    string
	calls  int // so far
}

func (e *engines) newFloor() (*floor, error) {
	f := &floor{server: redistest.Start(e.t)}
	f.client = f.server.Client()
	var err error
	f.sha, err = f.client.ScriptLoad(e.t.Context(), minimal).Result()
	return f, err
}

// users are as many as have room for nearly every charge within the window, as
// most checks of the gate have.
const (
	floorUsers  = 1_000_000
	floorWindow = 2 * time.Second
	floorLimit  = 10
)

// perSecond runs the script, so many of it in a pipeline, for about as long, if
// it is run as often a second as is guessed.
func (f *floor) perSecond(ctx context.Context, clients, pipelined int, lasting time.Duration, guess float64) (float64, error) {
	path, err := exec.LookPath("redis-benchmark")
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark comes with Redis, and is not here: %w", err)
	}
	host, port, _ := strings.Cut(f.server.Addr(), ":")
	calls := int(guess * lasting.Seconds())
	out, err := exec.CommandContext(ctx, path, "-h", host, "-p", port, "-c", strconv.Itoa(clients), "-P", strconv.Itoa(pipelined), "-n", strconv.Itoa(calls),
		"-r", strconv.Itoa(floorUsers), "--csv", "evalsha", f.sha, "1", "cap:__rand_int__", strconv.FormatInt(floorWindow.Milliseconds(), 10), strconv.Itoa(floorLimit), "n___rand_int__").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	f.calls += calls
	return parseBenchmark(string(out))
}

var benchmarkLine = regexp.MustCompile(`(?m)^"evalsha [^"]*","([0-9.]+)"`)

// parseBenchmark finds the rate in redis-benchmark's CSV.
func parseBenchmark(csv string) (float64, error) {
	found := benchmarkLine.FindStringSubmatch(csv)
	if found == nil {
		return 0, fmt.Errorf("redis-benchmark says %q", csv)
	}
	return strconv.ParseFloat(found[1], 64)
}

// probe makes bare round trips to a Redis, GETs of records, at a rate, until it
// is stopped.
func (w *world) probe(rate float64) (stop func() (*latencies, error)) {
	took := newLatencies()
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	var fault error
	running.Go(func() {
		s, began := newSchedule(rate, time.Hour), time.Now()
		for i := uint64(0); ctx.Err() == nil; i++ {
			due := began.Add(s.after(i))
			pause(time.Until(due))
			key := w.space.Record(sendgate.UserID(user(2 * (int(i) % (w.people.n / 2)))))
			if err := w.client.Get(w.t.Context(), key).Err(); err != nil {
				fault = err
				return
			}
			took.add(time.Since(due))
		}
	})
	return func() (*latencies, error) {
		cancel()
		running.Wait()
		return took, fault
	}
}

// redisProcessor is how much processor time a Redis has used.
func redisProcessor(ctx context.Context, client redis.UniversalClient) (sum time.Duration, err error) {
	info, err := client.Info(ctx, "cpu").Result()
	for line := range strings.Lines(info) {
		for _, name := range []string{"used_cpu_user:", "used_cpu_sys:"} {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
				s, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return 0, err
				}
				sum += seconds(s)
			}
		}
	}
	return sum, err
}
