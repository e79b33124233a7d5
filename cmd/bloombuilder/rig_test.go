package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/backend"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/config"
	"github.com/sendgate/sendgate/internal/cli"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/prefs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// installation is what a builder works on: a store, a Redis, and a folder with
// its configuration and the filters.
type installation struct {
	t        *testing.T
	dir      string
	conf     string
	endpoint string // of the DynamoDB
}

// install starts a DynamoDB and a Redis. What the SDK finds on this machine has
// no say in it.
func install(t *testing.T) installation {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	i := installation{t: t, dir: t.TempDir(), endpoint: dynamotest.Start(t).Endpoint()}
	writeFile(t, filepath.Join(i.dir, "catalog.yaml"), string(catalogfile.SampleYAML()))
	i.conf = i.configure("gate.yaml", redistest.Start(t).Addr(), i.endpoint, "file://"+i.filters())
	return i
}

func (i installation) filters() string { return filepath.Join(i.dir, "filters") }

// configure writes a configuration and returns its path.
func (i installation) configure(name, redisAddr, endpoint, url string) string {
	i.t.Helper()
	path := filepath.Join(i.dir, name)
	writeFile(i.t, path, fmt.Sprintf(`
catalog: catalog.yaml
redis: {addrs: ["%s"]}
store: {dynamodb: {region: eu-west-1, endpoint: "%s", create: true}}
filter: {url: "%s", memory: 16MiB}
`, redisAddr, endpoint, url))
	return path
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// open opens what the builder works on. It is closed when the test ends.
func (i installation) open() (*config.Config, *backend.Backend) {
	i.t.Helper()
	conf, err := config.Load(i.conf, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	b, err := backend.Open(i.t.Context(), conf)
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { _ = b.Close() })
	return conf, b
}

// store puts records into the store.
func (i installation) store(records ...*prefs.Record) {
	i.t.Helper()
	_, b := i.open()
	for _, r := range records {
		if err := b.Store.Put(i.t.Context(), r, 0); err != nil {
			i.t.Fatal(err)
		}
	}
}

// published lists the files of the filters that are published.
func (i installation) published() []string {
	i.t.Helper()
	files, err := filepath.Glob(filepath.Join(i.filters(), "*.filter"))
	if err != nil {
		i.t.Fatal(err)
	}
	return files
}

// only is the one that is published.
func (i installation) only() string {
	i.t.Helper()
	files := i.published()
	if len(files) != 1 {
		i.t.Fatalf("%q are published", files)
	}
	return files[0]
}

// record is one of settings.
func record(user string, settings sendgate.Settings, holds ...sendgate.Hold) *prefs.Record {
	return &prefs.Record{User: sendgate.UserID(user), Preferences: sendgate.Preferences{
		Revision: 1, Settings: settings, Holds: holds, UpdatedAt: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
	}}
}

// hasAll opens a filter, checks that it has all that rejects of some records,
// and returns its header.
func hasAll(t *testing.T, file string, records ...*prefs.Record) *bloom.Header {
	t.Helper()
	s, err := bloom.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	missing := 0
	for _, r := range records {
		for key := range bloom.KeysOf(sendgate.ConsentOf(r.User, &r.Preferences), func(sendgate.Setting) bool { return false }) {
			if !s.Has(key) {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("%d keys are missing", missing)
	}
	return s.Header()
}

// runs runs the program to its end.
func runs(ctx context.Context, args ...string) (out, log string, err error) {
	var o, l redistest.Output
	err = run(ctx, args, cli.Streams{Out: &o, Err: &l})
	return o.String(), l.String(), err
}
