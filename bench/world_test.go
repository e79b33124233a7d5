package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/internal/programs"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/dynamostore"
	"github.com/sendgate/sendgate/rebuild"
)

// catalog has three caps, whose windows are of seconds in place of days: so a
// run of a minute sees slots taken and given back as a week does, and what Redis
// keeps of a person is as long as in life.
const catalog = `
default_timezone: UTC
channels: [push, email]
categories:
  marketing:
    class: marketing
    caps:
      - {by: [category], window: 2s, limit: 10}
      - {by: [category, channel], window: 5s, limit: 20}
      - {by: [campaign_id], window: 2s, limit: 5}
topics:
  promotions: {category: marketing}
  newsletter: {category: marketing}
`

const tablePrefix = "bench"

// engines are what all worlds of a run share.
type engines struct {
	t        testing.TB
	programs string // their folder
	dynamo   *dynamotest.Server
}

func startEngines(t testing.TB) *engines {
	t.Helper()
	e := &engines{t: t, programs: programs.Build(t), dynamo: dynamotest.Start(t)}
	store, err := dynamostore.Open(t.Context(), dynamostore.Options{Config: e.dynamo.Config(), TablePrefix: tablePrefix, Create: true})
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// world is one gate, its Redis, and the people it knows.
type world struct {
	t       testing.TB
	people  people
	redis   *redistest.Server
	client  redis.UniversalClient
	space   *keyspace.Space
	archive *archive.Archive
	url     string // of the gate
}

// newWorld starts a gate that uses a filter of all who are out. The records of
// everybody are in Redis, and so are never asked of the store.
func (e *engines) newWorld(n int) *world {
	e.t.Helper()
	w := &world{t: e.t, people: people{n}, redis: redistest.Start(e.t)}
	w.client = w.redis.Client()
	dir := e.t.TempDir()
	var err error
	if w.space, err = keyspace.New(keyspace.DefaultNamespace, keyspace.DefaultPartitions); err != nil {
		e.t.Fatal(err)
	}
	filters := "file://" + filepath.ToSlash(filepath.Join(dir, "filters"))
	if err := os.Mkdir(filepath.Join(dir, "filters"), 0o700); err != nil {
		e.t.Fatal(err)
	}
	if w.archive, err = archive.Open(e.t.Context(), filters, keyspace.DefaultNamespace); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = w.archive.Close() })
	if err := w.fillCache(); err != nil {
		e.t.Fatal(err)
	}
	generation, err := w.build(w.archive)
	if err != nil {
		e.t.Fatal(err)
	}
	w.startGate(e, dir, filters)
	w.uses(generation)
	return w
}

// fillCache puts the records of everybody into Redis.
func (w *world) fillCache() error {
	const pipelined, keepFor = 2000, 24 * time.Hour
	var values [2]string
	for i := range values {
		p, err := preferences(i == 1, time.Now())
		if err != nil {
			return err
		}
		body, err := prefs.EncodePreferences(p)
		if err != nil {
			return err
		}
		values[i] = keyspace.RecordValue(p.Revision, body)
	}
	ctx := w.t.Context()
	for from := 0; from < w.people.n; from += pipelined {
		_, err := w.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i := from; i < min(from+pipelined, w.people.n); i++ {
				pipe.Set(ctx, w.space.Record(sendgate.UserID(user(i))), values[i%2], keepFor)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// silent is a rebuild's progress that nobody watches.
type silent struct{}

func (silent) Stage(rebuild.Stage)      {}
func (silent) Read(int)                 {}
func (silent) Done(*bloom.Built, error) {}

// build builds a filter as bloombuilder does, and returns its generation once
// it is published.
func (w *world) build(to rebuild.Archive) (generation int64, err error) {
	built, err := rebuild.New(rebuild.Options{
		Store: w.people, Streams: feed.NewPublisher(w.client, w.space, sendgate.SystemClock), Archive: to, Namespace: keyspace.DefaultNamespace,
		Catalog: func() (*sendgate.Catalog, error) { return catalogfile.Parse("catalog.yaml", []byte(catalog)) },
		Memory:  512 << 20, MaxFalsePositive: 0.001, AimFalsePositive: 1e-6, Segments: 4, Keep: 3, Progress: silent{}, Now: time.Now,
	}).Once(w.t.Context())
	if err != nil {
		return 0, err
	}
	return built.Header().Generation, nil
}

// startGate starts `gate serve`. It waits for Redis for up to a second, so that
// a gate which has too much to do shows as slow, and not as one that decides
// without.
func (w *world) startGate(e *engines, dir, filters string) {
	w.t.Helper()
	conf, err := json.Marshal(map[string]any{
		"listen": "127.0.0.1:0", "catalog": "catalog.yaml",
		"redis":    map[string]any{"addrs": []string{w.redis.Addr()}},
		"store":    map[string]any{"dynamodb": map[string]any{"region": "eu-west-1", "endpoint": e.dynamo.Endpoint(), "table_prefix": tablePrefix}},
		"filter":   map[string]any{"url": filters, "cache_dir": dir},
		"timeouts": map[string]any{"redis": "1s", "store": "5s"},
	})
	for name, data := range map[string][]byte{"gate.yaml": conf, "catalog.yaml": []byte(catalog)} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	p := programs.Start(w.t, programs.Options{Greets: true}, filepath.Join(e.programs, "gate"), "serve", "--config", filepath.Join(dir, "gate.yaml"))
	_, address, ok := strings.Cut(p.First, "http://")
	if !ok {
		w.t.Fatalf("the gate says %q", p.First)
	}
	w.url = "http://" + strings.TrimSpace(address)
	redistest.Until(w.t, "the gate is ready", func() bool {
		status, _, err := get(w.t.Context(), w.url+"/readyz")
		return err == nil && status == http.StatusOK
	})
}

// uses waits until the gate uses a filter and relies on it.
func (w *world) uses(generation int64) {
	w.t.Helper()
	redistest.Until(w.t, "the gate uses the filter", func() bool {
		m, err := w.metrics()
		return err == nil && m.value("sendgate_filter_generation") == float64(generation) && m.value("sendgate_filter_verifying") == 0
	})
}

// calm waits until a gate that had too much to do asks Redis again.
func (w *world) calm() {
	w.t.Helper()
	redistest.Until(w.t, "the gate asks Redis", func() bool {
		m, err := w.metrics()
		return err == nil && m.value("sendgate_breaker_open{redis}") == 0
	})
}

// singles asks single checks, of which a share of a hundred is opted out.
func (w *world) singles(out int) asks {
	return asks{url: w.url + "/v1/check", body: w.people.crowd(out).check, checks: 1}
}

// batches asks them in hundreds.
func (w *world) batches(out int) asks {
	return asks{url: w.url + "/v1/check/batch", body: w.people.crowd(out).batch, checks: batchSize}
}

// once asks one request and returns the answer.
func (w *world) once(a asks) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, a.url, bytes.NewReader(a.body()))
	if err != nil {
		return 0, nil, err
	}
	request.Header = jsonHeader.Clone()
	return do(request)
}

// stored is what is in the world's Redis.
func (w *world) stored() (keys, bytes int64, err error) {
	if keys, err = w.client.DBSize(w.t.Context()).Result(); err != nil {
		return 0, 0, err
	}
	info, err := w.client.Info(w.t.Context(), "memory").Result()
	_, rest, _ := strings.Cut(info, "used_memory:")
	_, _ = fmt.Sscan(rest, &bytes)
	return keys, bytes, err
}

func get(ctx context.Context, url string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	return do(request)
}

func do(request *http.Request) (status int, body []byte, err error) {
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// figures are what a gate says of itself, by name and, in braces, the value of
// its first label.
type figures map[string]float64

func (f figures) value(name string) float64 { return f[name] }

// metrics reads a gate's metrics. Of a histogram there are _sum and _count.
func (w *world) metrics() (figures, error) {
	_, body, err := get(w.t.Context(), w.url+"/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	f := figures{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			label := ""
			if len(m.GetLabel()) > 0 {
				label = "{" + m.GetLabel()[0].GetValue() + "}"
			}
			f[name+label] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			f[name+"_sum"+label] += m.GetHistogram().GetSampleSum()
			f[name+"_count"+label] += float64(m.GetHistogram().GetSampleCount())
		}
	}
	return f, nil
}

// processor is how much of it the parts have used so far.
type processor struct{ gate, redis, bench time.Duration }

func (w *world) processor() (p processor, err error) {
	m, err := w.metrics()
	if err != nil {
		return p, err
	}
	p.gate = seconds(m.value("process_cpu_seconds_total"))
	if p.redis, err = redisProcessor(w.t.Context(), w.client); err != nil {
		return p, err
	}
	p.bench, err = ownProcessor()
	return p, err
}

// plus is what was used before, and from one look to another.
func (p processor) plus(from, to processor) processor {
	return processor{p.gate + to.gate - from.gate, p.redis + to.redis - from.redis, p.bench + to.bench - from.bench}
}

// each is a duration divided by a number, in microseconds.
func each(d time.Duration, n int) string {
	return number(float64(d.Nanoseconds()) / 1000 / float64(max(1, n)))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
