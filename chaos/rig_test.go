package chaos_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
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
	scene       string
	folder      string                  // of the programs
	edited      string                  // of those that were built of edited sources
	environment func(gate int) []string // beside where the engines are
	config      string                  // file of gates and builder
	archive     string                  // folder of published filters
	engine      engine
	client      redis.UniversalClient // of whatever Redis serves
	failed      *redistest.Server     // the master of a cluster that a fault was about
	dynamo      *dynamotest.Server
	store       prefs.Store
	space       *keyspace.Space
	gates       []*gate
	ledger      *ledger
	scale       int           // how many times as long faults last
	stall       time.Duration // of what is stalled for long
	giveUp      time.Duration // after the end of a fault, on what is not in force

	row    atomic.Pointer[row] // that is being filled
	target atomic.Int32        // the gate that writers hurry to; -1: any
	avoid  atomic.Int32        // the gate that all writers but one keep away from; -1: none
}

// rigOptions say what a rig is made of.
type rigOptions struct {
	scene          string
	folder, edited string       // of the programs; the latter is of faults that need it
	gates          int          // how many
	redis          func(r *rig) // starts the Redis
	environment    func(gate int) []string
}

func everyGateHas(variable string) func(gate int) []string {
	return func(int) []string { return []string{variable} }
}

func theVictimHas(variable string) func(gate int) []string {
	return func(gate int) []string {
		if gate != int(theVictim) {
			return nil
		}
		return []string{variable}
	}
}

// newRig starts the engines and the gates.
func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	if o.environment == nil {
		o.environment = func(int) []string { return nil }
	}
	r := &rig{
		t: t, scene: o.scene, folder: o.folder, edited: o.edited, environment: o.environment, dynamo: dynamotest.Start(t), ledger: &ledger{},
		scale: 1, stall: 3500 * time.Millisecond, giveUp: 4 * promise,
	}
	r.target.Store(-1)
	r.avoid.Store(-1)
	r.row.Store(&row{})
	o.redis(r)
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
	for i := range o.gates {
		g := &gate{rig: r, index: i, store: startProxy(t, r.dynamo.Addr())}
		if r.engine.one != nil {
			g.redis = startProxy(t, r.engine.one.Addr())
		}
		r.gates = append(r.gates, g)
		g.start()
	}
	return r
}

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
			"redis":    r.engine.options(),
			"store":    map[string]any{"dynamodb": map[string]any{"region": "eu-west-1", "endpoint": "http://127.0.0.1:1", "table_prefix": tablePrefix}},
			"timeouts": map[string]any{"redis": "250ms", "store": "1s"},
			"filter": map[string]any{
				"url": (&url.URL{Scheme: "file", Path: filepath.ToSlash(r.archive)}).String(), "max_false_positive": 1e-9, "aim_false_positive": 1e-9, "poll": "1s", "memory": "1MiB",
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

// build starts the builder, for one run. An address that is empty is what the
// file says.
func (r *rig) build(redis, dynamo string) *programs.Process {
	r.t.Helper()
	return r.buildWith(r.folder, through(redis, dynamo)...)
}

func (r *rig) buildWith(folder string, environment ...string) *programs.Process {
	r.t.Helper()
	return programs.Start(r.t, programs.Options{Environment: environment}, filepath.Join(folder, "bloombuilder"), "--config", r.config, "--once")
}

// buildWell builds a filter and waits until every gate has it.
func (r *rig) buildWell() {
	r.t.Helper()
	before := make([]float64, len(r.gates))
	for i, g := range r.gates {
		before[i] = g.metric("sendgate_filter_generation")
	}
	r.build(r.engine.addr(), r.dynamo.Addr()).Wait()
	for i, g := range r.gates {
		until(r.t, "every gate has the new filter", func() bool { return g.metric("sendgate_filter_generation") > before[i] })
	}
}

// through has a program use these addresses, where there are any.
func through(redis, dynamo string) []string {
	environment := []string{"SENDGATE_STORE_DYNAMODB_ENDPOINT=http://" + dynamo}
	if redis != "" {
		environment = append(environment, "SENDGATE_REDIS_ADDRS="+redis)
	}
	return environment
}

// dice are random numbers of the seed, of their own for each use.
func dice(use, which uint64) *rand.Rand {
	return rand.New(rand.NewPCG(*seed, use<<32|which))
}
