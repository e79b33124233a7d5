package backend_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/backend"
	"github.com/sendgate/sendgate/config"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/dynamostore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// conf is a configuration on a store, with a Redis that is not there.
func conf(store config.Store) *config.Config {
	c := config.Default()
	c.Redis.Addrs = []string{"127.0.0.1:1"}
	c.Store = store
	return &c
}

func bbolt(t *testing.T) config.Store {
	t.Helper()
	return config.Store{Bbolt: config.Bbolt{Path: filepath.Join(t.TempDir(), "test.db")}}
}

// dynamo is a store at an endpoint. What the SDK finds on this machine has no
// say in it.
func dynamo(t *testing.T, endpoint string, create bool) config.Store {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	return config.Store{DynamoDB: &config.DynamoDB{Region: "eu-west-1", Endpoint: endpoint, TablePrefix: "test", Create: create}}
}

func open(t *testing.T, c *config.Config) *backend.Backend {
	t.Helper()
	b, err := backend.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil { // the second time, in most tests
			t.Error(err)
		}
	})
	return b
}

func TestTheLeast(t *testing.T) {
	c := conf(bbolt(t))
	b := open(t, c)
	if b.CapsRedis != nil || b.Archive != nil {
		t.Errorf("%+v", b)
	}
	if layout, err := b.Store.Layout(t.Context(), prefs.Layout{Partitions: 8}); err != nil || layout.Partitions != 8 {
		t.Errorf("%+v, %v", layout, err)
	}
	if _, err := backend.Open(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "store.bbolt: ") || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second time: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, c) // the file is free again
}

func TestEverything(t *testing.T) {
	server := redistest.Start(t)
	folder := filepath.Join(t.TempDir(), "filters")
	c := conf(dynamo(t, dynamotest.Start(t).Endpoint(), true))
	c.Redis.Addrs, c.CapsRedis.Addrs = []string{server.Addr()}, []string{server.Addr()}
	c.Filter.URL = "file://" + folder
	b := open(t, c)
	if entries, err := b.Archive.Generations(t.Context()); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	for name, client := range map[string]redis.UniversalClient{"redis": b.Redis, "caps_redis": b.CapsRedis} {
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Tables that are there are opened by whoever may not make any.
	c.Store.DynamoDB.Create = false
	second := open(t, c)
	if _, err := b.Store.Layout(t.Context(), prefs.Layout{Partitions: 8}); err != nil {
		t.Fatal(err)
	}
	if layout, err := second.Store.Layout(t.Context(), prefs.Layout{Partitions: 16}); err != nil || layout.Partitions != 8 {
		t.Errorf("%+v, %v", layout, err)
	}
	if err := errors.Join(second.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	for _, client := range []redis.UniversalClient{b.Redis, b.CapsRedis} {
		if err := client.Ping(t.Context()).Err(); !errors.Is(err, redis.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if _, err := b.Store.Layout(t.Context(), prefs.Layout{Partitions: 8}); !errors.Is(err, dynamostore.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A bucket is not asked before it is needed.
func TestABucketThatIsNotThere(t *testing.T) {
	c := conf(bbolt(t))
	dynamo(t, "", false) // for its environment
	c.Filter.URL = "s3://filters?region=eu-west-1&endpoint=http://127.0.0.1:1"
	if b := open(t, c); b.Archive == nil {
		t.Error("there is no archive")
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	server := dynamotest.Start(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   []string
	}{
		"redis":      {func(c *config.Config) { c.Redis.Addrs = nil }, []string{"redis: addrs: "}},
		"caps_redis": {func(c *config.Config) { c.CapsRedis.Addrs = []string{"a"} }, []string{"caps_redis: addrs[0]: "}},
		"filter.url": {func(c *config.Config) { c.Filter.URL = "file://" + file + "/folder" }, []string{"filter.url: ", file}},
		"namespace":  {func(c *config.Config) { c.Filter.URL, c.Namespace = "file:///f", "A/B" }, []string{"filter.url: "}},
		"no region": {func(c *config.Config) { c.Store = dynamo(t, server.Endpoint(), true); c.Store.DynamoDB.Region = "" },
			[]string{"store.dynamodb: ", "no region"}},
		"nobody there": {func(c *config.Config) { c.Store = dynamo(t, "http://127.0.0.1:1", true) },
			[]string{"store.dynamodb: ", "http://127.0.0.1:1", "refused"}},
		"no tables": {func(c *config.Config) { c.Store = dynamo(t, server.Endpoint(), false) },
			[]string{"store.dynamodb: ", `no table "test-records"`, server.Endpoint(), "create: true"}},
		"no credentials": {func(c *config.Config) {
			c.Store = dynamo(t, server.Endpoint(), false)
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "")
		}, []string{"store.dynamodb: ", server.Endpoint(), "credentials"}},
	} {
		t.Run(name, func(t *testing.T) {
			store := bbolt(t)
			with := conf(store)
			c.change(with)
			b, err := backend.Open(t.Context(), with)
			if err == nil {
				t.Fatalf("%+v, %v", b, b.Close())
			}
			for i, want := range c.want {
				if at := strings.Index(err.Error(), want); at < 0 || i == 0 && at != 0 {
					t.Errorf("no %q in its place in: %v", want, err)
				}
			}
			open(t, conf(store)) // nobody has the file open any more
		})
	}
}

// A DynamoDB that takes calls and never answers is waited for no longer than
// the caller waits.
func TestADynamoDBThatIsSilent(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	var server sync.WaitGroup
	server.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		cancel()
		<-over
		_ = conn.Close()
	})
	t.Cleanup(func() {
		close(over)
		_ = listener.Close()
		server.Wait()
		cancel()
	})
	_, err = backend.Open(ctx, conf(dynamo(t, endpoint, true)))
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "store.dynamodb: ") || !strings.Contains(err.Error(), endpoint) {
		t.Errorf("%v", err)
	}
}
