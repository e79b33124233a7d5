package config_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate/config"
	"github.com/sendgate/sendgate/redisconn"
)

const (
	unstored = `catalog: catalog.yaml
redis: {addrs: ["127.0.0.1:6379"]}
`
	least    = unstored + "store: {bbolt: {path: sendgate.db}}\n"
	onDynamo = unstored + "store: {dynamodb: {}}\n"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, text string, environment map[string]string) *config.Config {
	t.Helper()
	c, err := config.Load(write(t, text), environment)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheLeastFile(t *testing.T) {
	path := write(t, least)
	c, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Catalog, want.Store.Bbolt.Path = filepath.Join(filepath.Dir(path), "catalog.yaml"), filepath.Join(filepath.Dir(path), "sendgate.db")
	want.Redis.Addrs = []string{"127.0.0.1:6379"}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("%+v, want %+v", *c, want)
	}
	if level, err := c.Log.SlogLevel(); level != slog.LevelInfo || err != nil || !c.CapsBesideRecords() {
		t.Errorf("%v, %v, %v", level, err, c.CapsBesideRecords())
	}
	if c.Timeouts.Redis != 5*time.Millisecond || c.Timeouts.Store != 50*time.Millisecond {
		t.Errorf("%+v", c.Timeouts)
	}
}

const everything = `
listen: "[::1]:0"
catalog: /etc/sendgate/catalog.yaml
namespace: blue
partitions: 16
redis:
  {mode: sentinel, addrs: ["a:1", "b:2"], username: gate, password: secret, pool_size: 8, master_name: m, sentinel_username: s, sentinel_password: sp,
  tls: true, tls_ca: /ca, tls_cert: /cert, tls_key: /key, tls_server_name: redis.internal}
caps_redis:
  {mode: sentinel, addrs: ["c:3"], username: caps, password: hidden, pool_size: 9, master_name: n, sentinel_username: t, sentinel_password: tp,
  tls: true, tls_ca: /caps/ca, tls_cert: /caps/cert, tls_key: /caps/key, tls_server_name: caps.internal}
store: {dynamodb: {region: eu-west-1, endpoint: "http://127.0.0.1:4567", table_prefix: blue, create: true, scan_units: 50}}
filter:
  url: s3://filters?region=eu-west-1
  memory: 2GB
  build_memory: 3GB
  work_dir: /var/work
  max_false_positive: 1e-3
  aim_false_positive: 0.0005
  schedule: "@hourly"
  early_changes: 7
  keep: 5
  poll: 1m
  max_age: 2h
  verify_sample: 0.5
  cache_dir: /var/cache
timeouts: {redis: 1s, store: 10s}
shutdown_delay: 3s
log: {level: debug}
`

func complete() config.Config {
	return config.Config{
		Listen: "[::1]:0", Catalog: "/etc/sendgate/catalog.yaml", Namespace: "blue", Partitions: 16,
		Redis: redisconn.Options{
			Mode: "sentinel", Addrs: []string{"a:1", "b:2"}, Username: "gate", Password: "secret", PoolSize: 8,
			MasterName: "m", SentinelUsername: "s", SentinelPassword: "sp",
			TLS: true, TLSCA: "/ca", TLSCert: "/cert", TLSKey: "/key", TLSServerName: "redis.internal",
		},
		CapsRedis: redisconn.Options{
			Mode: "sentinel", Addrs: []string{"c:3"}, Username: "caps", Password: "hidden", PoolSize: 9,
			MasterName: "n", SentinelUsername: "t", SentinelPassword: "tp",
			TLS: true, TLSCA: "/caps/ca", TLSCert: "/caps/cert", TLSKey: "/caps/key", TLSServerName: "caps.internal",
		},
		Store: config.Store{DynamoDB: &config.DynamoDB{
			Region: "eu-west-1", Endpoint: "http://127.0.0.1:4567", TablePrefix: "blue", Create: true, ScanUnits: 50,
		}},
		Filter: config.Filter{
			URL: "s3://filters?region=eu-west-1", Memory: 2_000_000_000, BuildMemory: 3_000_000_000, WorkDir: "/var/work", MaxFalsePositive: 0.001, AimFalsePositive: 0.0005, Schedule: "@hourly",
			EarlyChanges: 7, Keep: 5, Poll: time.Minute, MaxAge: 2 * time.Hour, VerifySample: 0.5, CacheDir: "/var/cache",
		},
		Timeouts: config.Timeouts{Redis: time.Second, Store: 10 * time.Second}, ShutdownDelay: 3 * time.Second,
		Log: config.Log{Level: "debug"},
	}
}

func TestEveryMemberIsRead(t *testing.T) {
	if c := load(t, everything, nil); !reflect.DeepEqual(*c, complete()) || c.CapsBesideRecords() {
		t.Errorf("%+v", *c)
	}
}

// variables are all that override a value but for the other store's, each with
// the value that everything has.
var variables = map[string]string{
	"SENDGATE_LISTEN": "[::1]:0", "SENDGATE_CATALOG": "/etc/sendgate/catalog.yaml", "SENDGATE_NAMESPACE": "blue", "SENDGATE_PARTITIONS": "16",
	"SENDGATE_REDIS_MODE": "sentinel", "SENDGATE_REDIS_ADDRS": "a:1,b:2", "SENDGATE_REDIS_USERNAME": "gate", "SENDGATE_REDIS_PASSWORD": "secret",
	"SENDGATE_REDIS_TLS": "true", "SENDGATE_REDIS_POOL_SIZE": "8", "SENDGATE_CAPS_REDIS_MODE": "sentinel", "SENDGATE_CAPS_REDIS_ADDRS": "c:3",
	"SENDGATE_CAPS_REDIS_USERNAME": "caps", "SENDGATE_CAPS_REDIS_PASSWORD": "hidden", "SENDGATE_CAPS_REDIS_TLS": "true", "SENDGATE_CAPS_REDIS_POOL_SIZE": "9",
	"SENDGATE_REDIS_MASTER_NAME": "m", "SENDGATE_REDIS_SENTINEL_USERNAME": "s", "SENDGATE_REDIS_SENTINEL_PASSWORD": "sp",
	"SENDGATE_REDIS_TLS_CA": "/ca", "SENDGATE_REDIS_TLS_CERT": "/cert", "SENDGATE_REDIS_TLS_KEY": "/key", "SENDGATE_REDIS_TLS_SERVER_NAME": "redis.internal",
	"SENDGATE_CAPS_REDIS_MASTER_NAME": "n", "SENDGATE_CAPS_REDIS_SENTINEL_USERNAME": "t", "SENDGATE_CAPS_REDIS_SENTINEL_PASSWORD": "tp",
	"SENDGATE_CAPS_REDIS_TLS_CA": "/caps/ca", "SENDGATE_CAPS_REDIS_TLS_CERT": "/caps/cert", "SENDGATE_CAPS_REDIS_TLS_KEY": "/caps/key",
	"SENDGATE_CAPS_REDIS_TLS_SERVER_NAME": "caps.internal",
	"SENDGATE_STORE_DYNAMODB_REGION":      "eu-west-1", "SENDGATE_STORE_DYNAMODB_ENDPOINT": "http://127.0.0.1:4567", "SENDGATE_STORE_DYNAMODB_TABLE_PREFIX": "blue",
	"SENDGATE_STORE_DYNAMODB_CREATE": "true", "SENDGATE_STORE_DYNAMODB_SCAN_UNITS": "50", "SENDGATE_FILTER_URL": "s3://filters?region=eu-west-1",
	"SENDGATE_FILTER_MEMORY": "2GB", "SENDGATE_FILTER_BUILD_MEMORY": "3GB", "SENDGATE_FILTER_WORK_DIR": "/var/work", "SENDGATE_FILTER_MAX_FALSE_POSITIVE": "0.001", "SENDGATE_FILTER_AIM_FALSE_POSITIVE": "5e-4",
	"SENDGATE_FILTER_SCHEDULE": "@hourly", "SENDGATE_FILTER_EARLY_CHANGES": "7", "SENDGATE_FILTER_KEEP": "5", "SENDGATE_FILTER_POLL": "1m",
	"SENDGATE_FILTER_MAX_AGE": "2h", "SENDGATE_FILTER_VERIFY_SAMPLE": "0.5", "SENDGATE_FILTER_CACHE_DIR": "/var/cache", "SENDGATE_TIMEOUTS_REDIS": "1s", "SENDGATE_TIMEOUTS_STORE": "10s", "SENDGATE_LOG_LEVEL": "debug",
	"SENDGATE_SHUTDOWN_DELAY": "3s",
}

// members lists the path of every member, as `redis.pool_size`.
func members(t reflect.Type, prefix string) (paths []string) {
	for field := range t.Fields() {
		path, of := prefix+field.Tag.Get("yaml"), field.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			paths = append(paths, members(of, path+".")...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

func TestEveryMemberCanBeOverridden(t *testing.T) {
	named := map[string]bool{}
	if c := load(t, unstored, map[string]string{"SENDGATE_STORE_BBOLT_PATH": "/s"}); c.Store != (config.Store{Bbolt: config.Bbolt{Path: "/s"}}) {
		t.Errorf("%+v", c.Store)
	}
	for _, path := range members(reflect.TypeFor[config.Config](), "") {
		named["SENDGATE_"+strings.ToUpper(strings.ReplaceAll(path, ".", "_"))] = true
	}
	delete(named, "SENDGATE_STORE_BBOLT_PATH")
	if want := slices.Sorted(maps.Keys(variables)); !slices.Equal(slices.Sorted(maps.Keys(named)), want) {
		t.Errorf("the members are %v", slices.Sorted(maps.Keys(named)))
	}
	if c := load(t, unstored, variables); !reflect.DeepEqual(*c, complete()) {
		t.Errorf("%+v", *c)
	}
	// The environment wins over the file, one member at a time.
	for name, other := range map[string]string{
		"SENDGATE_LISTEN": "a:1", "SENDGATE_CATALOG": "/c", "SENDGATE_NAMESPACE": "green", "SENDGATE_PARTITIONS": "2", "SENDGATE_REDIS_ADDRS": "d:4",
		"SENDGATE_REDIS_USERNAME": "n", "SENDGATE_REDIS_PASSWORD": "n", "SENDGATE_REDIS_POOL_SIZE": "1",
		"SENDGATE_CAPS_REDIS_ADDRS": "e:5", "SENDGATE_CAPS_REDIS_USERNAME": "n", "SENDGATE_CAPS_REDIS_PASSWORD": "n",
		"SENDGATE_CAPS_REDIS_POOL_SIZE": "1", "SENDGATE_TIMEOUTS_REDIS": "2ms",
		"SENDGATE_TIMEOUTS_STORE": "2ms", "SENDGATE_LOG_LEVEL": "error", "SENDGATE_SHUTDOWN_DELAY": "1m",
		"SENDGATE_REDIS_MASTER_NAME": "x", "SENDGATE_REDIS_SENTINEL_USERNAME": "x", "SENDGATE_REDIS_SENTINEL_PASSWORD": "x", "SENDGATE_REDIS_TLS_CA": "/x",
		"SENDGATE_REDIS_TLS_CERT": "/x", "SENDGATE_CAPS_REDIS_TLS_KEY": "/x", "SENDGATE_CAPS_REDIS_TLS_SERVER_NAME": "x",
		"SENDGATE_STORE_DYNAMODB_REGION": "us-east-1", "SENDGATE_STORE_DYNAMODB_ENDPOINT": "https://d", "SENDGATE_STORE_DYNAMODB_TABLE_PREFIX": "p",
		"SENDGATE_STORE_DYNAMODB_CREATE": "false", "SENDGATE_STORE_DYNAMODB_SCAN_UNITS": "0", "SENDGATE_FILTER_URL": "file:///f",
		"SENDGATE_FILTER_MEMORY": "1048576", "SENDGATE_FILTER_MAX_FALSE_POSITIVE": "0.01", "SENDGATE_FILTER_AIM_FALSE_POSITIVE": "1e-12",
		"SENDGATE_FILTER_SCHEDULE": "0 4 * * *", "SENDGATE_FILTER_EARLY_CHANGES": "0", "SENDGATE_FILTER_KEEP": "1", "SENDGATE_FILTER_POLL": "1s",
		"SENDGATE_FILTER_MAX_AGE": "720h", "SENDGATE_FILTER_VERIFY_SAMPLE": "0", "SENDGATE_FILTER_CACHE_DIR": "/d",
	} {
		got, want := *load(t, everything, map[string]string{name: other}), complete()
		if n := differences(reflect.ValueOf(got), reflect.ValueOf(want)); n != 1 {
			t.Errorf("%s changes %d members: %+v", name, n, got)
		}
	}
}

func differences(a, b reflect.Value) (n int) {
	for i := range a.NumField() {
		if of := reflect.Indirect(a.Field(i)); of.Kind() == reflect.Struct {
			n += differences(of, reflect.Indirect(b.Field(i)))
		} else if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			n++
		}
	}
	return n
}

func TestAnEmptyVariableIsNotSet(t *testing.T) {
	empty := map[string]string{}
	for name := range variables {
		empty[name] = ""
	}
	if c := load(t, everything, empty); !reflect.DeepEqual(*c, complete()) {
		t.Errorf("%+v", *c)
	}
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	path := write(t, least)
	c, err := config.Load(path, map[string]string{"SENDGATE_CATALOG": "sub/c.yaml"})
	if want := filepath.Join(filepath.Dir(path), "sub", "c.yaml"); err != nil || c.Catalog != want {
		t.Errorf("%q, %v", c.Catalog, err)
	}
	path = write(t, least+"caps_redis: {addrs: [\"a:1\"], tls: true, tls_ca: ca.pem, tls_cert: c.pem, tls_key: /k.pem}\n")
	c, err = config.Load(path, map[string]string{"SENDGATE_REDIS_TLS": "true", "SENDGATE_REDIS_TLS_CA": "sub/ca.pem"})
	if err != nil {
		t.Fatal(err)
	}
	in := filepath.Dir(path)
	want := []string{filepath.Join(in, "sub", "ca.pem"), filepath.Join(in, "ca.pem"), filepath.Join(in, "c.pem"), "/k.pem"}
	if got := []string{c.Redis.TLSCA, c.CapsRedis.TLSCA, c.CapsRedis.TLSCert, c.CapsRedis.TLSKey}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// refused loads a file that has to be refused with certain lines.
func refused(t *testing.T, text string, environment map[string]string, want string) {
	t.Helper()
	path := write(t, text)
	c, err := config.Load(path, environment)
	if err == nil {
		t.Errorf("taken, want %s:\n%s%v\n%+v", want, text, environment, c)
	} else if got := strings.ReplaceAll(err.Error(), path, "gate.yaml"); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "gate.yaml: the file is empty",
		"listen: a:1\ncolour: red\n": `gate.yaml:2: the file: there is no member "colour"`,
		least + "timeouts:\n  redis: 5ms\n  dynamo: 1s\n":               `gate.yaml:6: timeouts: there is no member "dynamo"`,
		least + "Listen: a:1\n":                                         `gate.yaml:4: the file: there is no member "Listen"`,
		least + "redis: {addrs: [\"a:1\"]}\n":                           `gate.yaml:4: mapping key "redis" already defined`,
		least + "timeouts:\n  redis: 5 ms\n":                            `gate.yaml:5: timeouts.redis: must be a length of time, such as 5ms or 1s, not "5 ms"`,
		least + "timeouts: {store: fast}\n":                             `gate.yaml:4: timeouts.store: must be a length of time, such as 5ms or 1s, not "fast"`,
		least + "timeouts: {store: 50}\n":                               `gate.yaml:4: timeouts.store: must be a length of time, such as 5ms or 1s, not "50"`,
		least + "timeouts: {store: -1s}\n":                              `gate.yaml:4: timeouts.store: must be a length of time, such as 5ms or 1s, not "-1s"`,
		least + "timeouts: {redis: 999us}\n":                            "gate.yaml:4: timeouts.redis: must be from 1ms to 10s, not 999µs",
		least + "timeouts:\n  redis: 5ms\n  store: 11s\n":               "gate.yaml:6: timeouts.store: must be from 1ms to 10s, not 11s",
		least + "shutdown_delay: 2m\n":                                  "gate.yaml:4: shutdown_delay: must be from 0s to 1m0s, not 2m0s",
		least + "partitions: 1.5\n":                                     "gate.yaml:4: partitions: must be a whole number",
		least + "partitions: 5000\n":                                    "gate.yaml:4: partitions: ",
		least + "namespace: Blue\n":                                     "gate.yaml:4: namespace: ",
		least + "listen: \"8080\"\n":                                    `gate.yaml:4: listen: must be host:port, not "8080"`,
		least + "listen: localhost:http\n":                              `gate.yaml:4: listen: must be host:port, not "localhost:http"`,
		least + "log: {level: INFO+3}\n":                                `gate.yaml:4: log.level: must be debug, info, warn or error, not "INFO+3"`,
		least + "log: {level: verbose}\n":                               `gate.yaml:4: log.level: must be debug, info, warn or error, not "verbose"`,
		strings.Replace(least, ":6379", "", 1):                          `gate.yaml:2: redis.addrs[0]: must be host:port, not "127.0.0.1"`,
		strings.Replace(least, "addrs: ", "tls: yes, addrs: ", 1):       "gate.yaml:2: redis.tls: must be true or false",
		strings.Replace(least, "addrs: ", "mode: ring, addrs: ", 1):     `gate.yaml:2: redis.mode: must be single, sentinel or cluster, not "ring"`,
		least + "caps_redis:\n  mode: sentinel\n  addrs: [\"a:1\"]\n":   "gate.yaml:4: caps_redis.master_name: what the Sentinels call",
		strings.Replace(least, "addrs: ", "tls_ca: ca.pem, addrs: ", 1): "gate.yaml:2: redis.tls_ca: is of no use without tls: true",
		least + "caps_redis: {tls: true}\n":                             "gate.yaml:4: caps_redis.addrs: at least one host:port is needed",
		least + "caps_redis:\n  addrs: []\n  pool_size: 3\n":            "gate.yaml:5: caps_redis.addrs: at least one host:port is needed",
		least + "caps_redis:\n  addrs: [\"a:1\", \"b:1\"]\n":            "gate.yaml:5: caps_redis.addrs: a single Redis has one address",
		"log: {level: loud}\n": "gate.yaml:1: catalog: the path of a catalog file is required\n" +
			"gate.yaml:1: redis.addrs: at least one host:port is needed\n" +
			"gate.yaml:1: store: a store is required: bbolt: {path: sendgate.db} for one gate, or dynamodb: {region: eu-west-1} for several\n" +
			`gate.yaml:1: log.level: must be debug, info, warn or error, not "loud"`,
	} {
		refused(t, text, nil, want)
	}
	if _, err := config.Load("none.yaml", nil); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("%v", err)
	}
	if c := load(t, least+"caps_redis: {}\n", nil); !c.CapsBesideRecords() {
		t.Error("nothing is something")
	}
}

// A fault of a variable names the variable, not a line that has nothing to do
// with it.
func TestVariablesThatAreRefused(t *testing.T) {
	for set, want := range map[string]string{
		"TIMEOUTS_REDIS=5":      `environment: SENDGATE_TIMEOUTS_REDIS: "5" is not understood`,
		"TIMEOUTS_STORE=1h":     "environment: SENDGATE_TIMEOUTS_STORE: must be from 1ms to 10s, not 1h0m0s",
		"PARTITIONS=many":       `environment: SENDGATE_PARTITIONS: "many" is not understood`,
		"REDIS_POOL_SIZE=1.5":   `environment: SENDGATE_REDIS_POOL_SIZE: "1.5" is not understood`,
		"REDIS_TLS=maybe":       `environment: SENDGATE_REDIS_TLS: "maybe" is not understood`,
		"REDIS_ADDRS=redis":     `environment: SENDGATE_REDIS_ADDRS: must be host:port, not "redis"`,
		"REDIS_MODE=ring":       `environment: SENDGATE_REDIS_MODE: must be single, sentinel or cluster`,
		"REDIS_ADDRS=a:1, b:1":  "environment: SENDGATE_REDIS_ADDRS: a single Redis has one address",
		"LISTEN=here":           `environment: SENDGATE_LISTEN: must be host:port, not "here"`,
		"LOG_LEVEL=loud":        "environment: SENDGATE_LOG_LEVEL: must be debug",
		"CAPS_REDIS_PASSWORD=x": "gate.yaml:1: caps_redis.addrs: at least one host:port is needed",
		"REDIS_ADRS=a:1":        "environment: SENDGATE_REDIS_ADRS overrides nothing; is SENDGATE_REDIS_ADDRS meant?",
		"TIMEOUT_REDIS=1s":      "environment: SENDGATE_TIMEOUT_REDIS overrides nothing; is SENDGATE_TIMEOUTS_REDIS meant?",
		"LOGLEVEL=debug":        "environment: SENDGATE_LOGLEVEL overrides nothing; is SENDGATE_LOG_LEVEL meant?",
		"CAPSREDIS_ADDRS=a:1":   "environment: SENDGATE_CAPSREDIS_ADDRS overrides nothing; is SENDGATE_CAPS_REDIS_ADDRS meant?",
	} {
		name, value, _ := strings.Cut(set, "=")
		refused(t, least, map[string]string{"SENDGATE_" + name: value}, want)
	}
	refused(t, strings.Replace(least, "redis:", "log: {level: loud}\nredis:", 1), map[string]string{"SENDGATE_LISTEN": "x"},
		"gate.yaml:2: log.level: must be debug, info, warn or error, not \"loud\"\nenvironment: SENDGATE_LISTEN: must be host:port")
}

// Others name their variables so too. They are left alone.
func TestForeignVariables(t *testing.T) {
	foreign := map[string]string{"PATH": "/bin", "SENDGATE": "x", "SENDGATE_CASES": "/cases", "TIMEOUTS_REDIS": "x"}
	for _, service := range []string{"SENDGATE", "SENDGATE_REDIS", "SENDGATE_STORE", "SENDGATE_FILTER", "SENDGATE_GATE"} { // as Kubernetes does
		for _, v := range []string{"SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8080_TCP", "PORT_8080_TCP_PROTO", "PORT_8080_TCP_PORT", "PORT_8080_TCP_ADDR"} {
			foreign[service+"_"+v] = fmt.Sprint("tcp://10.0.0.1:8080/", v)
		}
	}
	load(t, least, foreign)
}
