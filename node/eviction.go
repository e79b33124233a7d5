package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/api"
)

// How often the Redis of the caps is asked what it does when it is full, how
// soon again where it gave no answer, and how long that may take.
const (
	evictionEvery = time.Minute
	evictionRetry = 5 * time.Second
	evictionLimit = 2 * time.Second
)

// eviction knows whether the Redis of the caps may drop them: that would start
// them anew without a trace.
type eviction struct {
	member string // of the configuration
	client redis.UniversalClient

	mu     sync.Mutex
	looked bool
	evicts []string // what may evict caps, by the latest answer
	told   bool     // there was an answer at some time
	failed string   // why there was none the last time, where that is worth saying
}

// watchEviction asks once a minute until the context ends. It says what it has
// found in the log when that changes.
func (n *Node) watchEviction(ctx context.Context) {
	said := ""
	for {
		pause := evictionEvery
		if !n.eviction.look(ctx) {
			pause = evictionRetry
		}
		if detail := n.eviction.problem(); ctx.Err() == nil && detail != said {
			if said = detail; detail != "" {
				n.o.Log.Warn("frequency caps may not be kept", "detail", detail)
			} else {
				n.o.Log.Info("frequency caps are kept when Redis is full")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// newEviction makes what watches over the Redis of the caps.
func (n *Node) newEviction(client redis.UniversalClient) *eviction {
	e := &eviction{member: "redis", client: client}
	if n.o.CapsRedis != nil {
		e.member = "caps_redis"
	}
	n.metrics.Gauge("sendgate_caps_may_be_evicted", "1 if the Redis of the frequency caps may evict them, or has not told whether it does.",
		func() float64 {
			if e.mayEvict() {
				return 1
			}
			return 0
		})
	return e
}

// evictionPart says whether caps may be evicted.
func (n *Node) evictionPart() api.Part {
	part := api.Part{Name: "caps_eviction", State: api.PartOK, Detail: n.eviction.problem()}
	if part.Detail != "" {
		part.State = api.PartDegraded
	}
	return part
}

func (e *eviction) mayEvict() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.looked && !e.told || len(e.evicts) > 0
}

// problem is what an operator should know, or nothing.
func (e *eviction) problem() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case len(e.evicts) > 0:
		return fmt.Sprintf("%s evicts keys when it is full, frequency caps too, which start anew then (%s): set maxmemory-policy noeviction, or give caps a Redis of their own, caps_redis",
			e.member, strings.Join(e.evicts, ", "))
	case e.failed != "":
		return fmt.Sprintf("whether %s evicts frequency caps could not be read (%s): see to it that it has maxmemory-policy noeviction", e.member, e.failed)
	}
	return ""
}

// look asks every master, and tells whether all have answered. While they do
// not, their latest answer counts.
func (e *eviction) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, evictionLimit)
	defer cancel()
	var mu sync.Mutex
	var evicts, failed []string
	refused := false // by a Redis, in words
	ask := func(ctx context.Context, client redis.UniversalClient, where string) error {
		room, err := askRoom(ctx, client)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			var given redis.Error
			refused = refused || errors.As(err, &given)
			failed = append(failed, where+err.Error())
		case room.evict():
			evicts = append(evicts, where+room.String())
		}
		return nil
	}
	if cluster, ok := e.client.(*redis.ClusterClient); ok {
		if err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
			return ask(ctx, master, master.Options().Addr+": ")
		}); err != nil {
			failed = append(failed, err.Error())
		}
	} else {
		_ = ask(ctx, e.client, "")
	}
	slices.Sort(evicts)
	slices.Sort(failed)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.looked = true
	if len(failed) == 0 || len(evicts) > 0 {
		e.evicts = evicts
	}
	e.told = e.told || len(failed) == 0
	// A Redis that is down for a while after it has told is news for others.
	e.failed = ""
	if refused || !e.told {
		e.failed = strings.Join(failed, "; ")
	}
	return len(failed) == 0
}

// room is what a Redis may take, and what it does at the end of it.
type room struct {
	memory int64 // bytes; 0 is any amount
	policy string
}

// evict tells whether keys with a TTL, which caps are, may be evicted.
func (r room) evict() bool { return r.memory > 0 && r.policy != "noeviction" }

func (r room) String() string {
	return fmt.Sprintf("maxmemory-policy %s, maxmemory %d", r.policy, r.memory)
}

// askRoom asks one Redis by INFO, which every provider allows, and by CONFIG
// if that tells nothing.
func askRoom(ctx context.Context, client redis.UniversalClient) (room, error) {
	info, err := client.Info(ctx, "memory").Result()
	if r, ok := parseRoom(infoFields(info), "maxmemory", "maxmemory_policy"); err == nil && ok {
		return r, nil
	}
	config, configErr := client.ConfigGet(ctx, "maxmemory*").Result()
	if r, ok := parseRoom(config, "maxmemory", "maxmemory-policy"); configErr == nil && ok {
		return r, nil
	}
	if err == nil {
		err = errors.New("INFO memory says nothing of maxmemory_policy")
	}
	return room{}, err
}

func parseRoom(fields map[string]string, memory, policy string) (room, bool) {
	bytes, err := strconv.ParseInt(fields[memory], 10, 64)
	return room{bytes, fields[policy]}, err == nil && fields[policy] != ""
}

func infoFields(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
