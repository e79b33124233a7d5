package chaos_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/internal/programs"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/dynamostore"
)

const (
	tablePrefix = "chaos"
	partitions  = 32
)

// rig is everything that runs beside this test, and what is known of it.
type rig struct {
	t           *testing.T
	folder      string                  // of the programs
	environment func(gate int) []string // beside where the engines are
	config      string                  // file of gates and builder
	archive     string                  // folder of published filters
	redis       *redistest.Server
	client      redis.UniversalClient // of the Redis that is the master
	dynamo      *dynamotest.Server
	store       prefs.Store
	space       *keyspace.Space
	gates       []*gate
	ledger      *ledger
	seed        uint64
	scale       int           // how many times as long faults last
	giveUp      time.Duration // after the end of a fault, on what is not in force

	row    atomic.Pointer[row] // that is being filled
	target atomic.Int32        // the gate that writers hurry to; -1: any
	avoid  atomic.Int32        // the gate that all writers but one keep away from; -1: none
}

// newRig starts the engines and so many gates. environment may be nil.
func newRig(t *testing.T, folder string, gates int, environment func(gate int) []string) *rig {
	t.Helper()
	if environment == nil {
		environment = func(int) []string { return nil }
	}
	r := &rig{t: t, folder: folder, environment: environment, dynamo: dynamotest.Start(t), ledger: &ledger{}, seed: *seed, scale: 1, giveUp: 4 * promise}
	r.target.Store(-1)
	r.avoid.Store(-1)
	r.row.Store(&row{})
	r.useRedis(startRedis(t))
	store, err := dynamostore.Open(t.Context(), dynamostore.Options{Config: r.dynamo.Config(), TablePrefix: tablePrefix, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	r.store = store
	if r.space, err = keyspace.New(keyspace.DefaultNamespace, partitions); err != nil {
		t.Fatal(err)
	}
	r.configure()
	for i := range gates {
		g := &gate{rig: r, index: i, redis: startProxy(t, r.redis.Addr()), store: startProxy(t, r.dynamo.Addr())}
		r.gates = append(r.gates, g)
		g.start()
	}
	return r
}

// startRedis starts a Redis that keeps a file, and waits for no further replica
// before it serves one.
func startRedis(t *testing.T) *redistest.Server {
	t.Helper()
	return redistest.Start(t, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
}

// useRedis makes a server the master as far as this side goes by it.
func (r *rig) useRedis(s *redistest.Server) { r.redis, r.client = s, s.Client() }

// configure writes the file that gates and builder share. The limits are those
// of a machine that is busy with other tests.
func (r *rig) configure() {
	r.t.Helper()
	dir := r.t.TempDir()
	r.archive = filepath.Join(dir, "filters")
	if err := os.Mkdir(r.archive, 0o700); err != nil {
		r.t.Fatal(err)
	}
	files := map[string]any{
		"catalog.yaml": catalog(),
		"gate.yaml": map[string]any{
			"listen": "127.0.0.1:0", "catalog": "catalog.yaml", "partitions": partitions,
			"redis":    map[string]any{"addrs": []string{"127.0.0.1:1"}}, // each has a proxy of its own
			"store":    map[string]any{"dynamodb": map[string]any{"region": "eu-west-1", "endpoint": "http://127.0.0.1:1", "table_prefix": tablePrefix}},
			"timeouts": map[string]any{"redis": "250ms", "store": "1s"},
			"filter": map[string]any{
				"url": "file://" + filepath.ToSlash(r.archive), "max_false_positive": 1e-9, "aim_false_positive": 1e-9, "poll": "1s", "memory": "1MiB",
			},
		},
	}
	for name, content := range files {
		data, err := json.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	r.config = filepath.Join(dir, "gate.yaml")
}

// build starts the builder, for one run.
func (r *rig) build(redis, dynamo string) *programs.Process {
	r.t.Helper()
	return programs.Start(r.t, programs.Options{Environment: through(redis, dynamo)}, filepath.Join(r.folder, "bloombuilder"), "--config", r.config, "--once")
}

// buildWell builds a filter and waits until every gate has it.
func (r *rig) buildWell() {
	r.t.Helper()
	before := make([]float64, len(r.gates))
	for i, g := range r.gates {
		before[i] = g.metric("sendgate_filter_generation")
	}
	r.build(r.redis.Addr(), r.dynamo.Addr()).Wait()
	for i, g := range r.gates {
		until(r.t, "every gate has the new filter", func() bool { return g.metric("sendgate_filter_generation") > before[i] })
	}
}

// through has a program use these addresses.
func through(redis, dynamo string) []string {
	return []string{"SENDGATE_REDIS_ADDRS=" + redis, "SENDGATE_STORE_DYNAMODB_ENDPOINT=http://" + dynamo}
}

// dice are random numbers of the seed, of their own for each use.
func (r *rig) dice(use, which uint64) *rand.Rand {
	return rand.New(rand.NewPCG(r.seed, use<<32|which))
}
