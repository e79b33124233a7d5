package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/internal/programs"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/dynamostore"
)

const tablePrefix = "e2e"

// fleet is everything that runs beside this test.
type fleet struct {
	t      *testing.T
	folder string // of the programs
	redis  *redistest.Server
	client redis.UniversalClient
	dynamo *dynamotest.Server
	config string // the file of the gates now running
	gates  []*gate
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, folder: programs.Build(t), redis: redistest.Start(t), dynamo: dynamotest.Start(t)}
	f.client = f.redis.Client()
	store, err := dynamostore.Open(t.Context(), dynamostore.Options{Config: f.dynamo.Config(), TablePrefix: tablePrefix, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fleet) load(w *world) {
	f.t.Helper()
	w.load(f.t, dynamodb.NewFromConfig(f.dynamo.Config()), tablePrefix+"-records")
}

// itemOf is a record as the store writes it while nothing is pending on it.
func itemOf(r *prefs.Record, body []byte) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"user":     &types.AttributeValueMemberS{Value: string(r.User)},
		"revision": &types.AttributeValueMemberN{Value: strconv.FormatInt(r.Revision, 10)},
		"body":     &types.AttributeValueMemberB{Value: body},
	}
}

// configure writes the file that gates and builder share. The limits are
// those of a machine that is busy with other tests.
func (f *fleet) configure(filter map[string]any) {
	f.t.Helper()
	dir := f.t.TempDir()
	archive := filepath.Join(dir, "filters")
	if err := os.Mkdir(archive, 0o700); err != nil {
		f.t.Fatal(err)
	}
	filter["url"] = "file://" + filepath.ToSlash(archive)
	files := map[string]any{
		"catalog.yaml": catalog(), // JSON is YAML
		"gate.yaml": map[string]any{
			"listen": "127.0.0.1:0", "catalog": "catalog.yaml",
			"redis":    map[string]any{"addrs": []string{f.redis.Addr()}},
			"store":    map[string]any{"dynamodb": map[string]any{"region": "eu-west-1", "endpoint": f.dynamo.Endpoint(), "table_prefix": tablePrefix}},
			"filter":   filter,
			"timeouts": map[string]any{"redis": "1s", "store": "5s"},
		},
	}
	for name, content := range files {
		data, err := json.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	f.config = filepath.Join(dir, "gate.yaml")
}

// build starts the builder, for one run.
func (f *fleet) build(environment ...string) *programs.Process {
	f.t.Helper()
	return programs.Start(f.t, programs.Options{Environment: environment}, filepath.Join(f.folder, "bloombuilder"), "--config", f.config, "--once")
}

// startGate starts one more gate and waits until it is ready.
func (f *fleet) startGate() *gate {
	f.t.Helper()
	p := programs.Start(f.t, programs.Options{Greets: true}, filepath.Join(f.folder, "gate"), "serve", "--config", f.config)
	_, address, ok := strings.Cut(p.First, "http://")
	if !ok {
		f.t.Fatalf("the gate says %q", p.First)
	}
	g := &gate{Process: p, url: "http://" + strings.TrimSpace(address)}
	until(f.t, "the gate is ready", func() bool {
		response, err := client.Get(g.url + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	f.gates = append(f.gates, g)
	return g
}

// stopGates ends all gates.
func (f *fleet) stopGates() {
	f.t.Helper()
	for _, g := range f.gates {
		g.Stop()
	}
	f.gates = nil
}

// awaitGeneration waits until gates have another filter than the one of a
// generation, and the same, and returns its generation.
func (f *fleet) awaitGeneration(after float64) (generation float64) {
	f.t.Helper()
	until(f.t, fmt.Sprintf("every gate has a filter after generation %.0f", after), func() bool {
		generation = f.gates[0].metric("sendgate_filter_generation")
		for _, g := range f.gates {
			if now := g.metric("sendgate_filter_generation"); now == after || now != generation {
				return false
			}
		}
		return true
	})
	return generation
}

// patience is for a machine that is busy with other tests. Nothing waits it
// out that is going to succeed.
const patience = 2 * time.Minute

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-limit.C:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
