package config_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate/config"
)

// The file as the design has it.
const designed = `listen: 127.0.0.1:8080
catalog: catalog.yaml
redis: {mode: single, addrs: ["127.0.0.1:6379"]}
store: {dynamodb: {region: eu-west-1, endpoint: "http://127.0.0.1:4567", table_prefix: sendgate, create: true}}
filter: {url: "file:///var/lib/sendgate/filters", memory: 512MiB, max_false_positive: 0.001, schedule: "*/15 * * * *"}
timeouts: {redis: 5ms, store: 50ms}
log: {level: info}
`

func TestTheDesignedFile(t *testing.T) {
	path := write(t, designed)
	c, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Catalog, want.Redis.Mode, want.Redis.Addrs = filepath.Join(filepath.Dir(path), "catalog.yaml"), "single", []string{"127.0.0.1:6379"}
	want.Store.DynamoDB = &config.DynamoDB{Region: "eu-west-1", Endpoint: "http://127.0.0.1:4567", TablePrefix: "sendgate", Create: true}
	want.Filter = config.Filter{
		URL: "file:///var/lib/sendgate/filters", Memory: 512 << 20, BuildMemory: 512 << 20, MaxFalsePositive: 0.001, AimFalsePositive: 1e-6, Schedule: "*/15 * * * *",
		EarlyChanges: 100_000, Keep: 3, Poll: 10 * time.Second, MaxAge: time.Hour, VerifySample: 0.001,
	}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("%+v, want %+v", *c, want)
	}
}

// Which store it is depends on what is there, never on a default.
func TestOneStore(t *testing.T) {
	bbolt := config.Store{Bbolt: config.Bbolt{Path: "/s"}}
	for _, c := range []struct {
		store     string
		variables map[string]string
		want      config.Store
	}{
		{"store: {bbolt: {path: /s}}\n", nil, bbolt},
		{"store: {bbolt: {path: /s}, dynamodb: null}\n", nil, bbolt},
		{"store: {bbolt: {path: /s}}\n", map[string]string{"SENDGATE_STORE_DYNAMODB_REGION": ""}, bbolt},
		{"", map[string]string{"SENDGATE_STORE_BBOLT_PATH": "/s"}, bbolt},
		{"store: {dynamodb: {}}\n", nil, config.Store{DynamoDB: &config.DynamoDB{TablePrefix: "sendgate"}}},
		{"store: {bbolt: {}, dynamodb: {}}\n", nil, config.Store{DynamoDB: &config.DynamoDB{TablePrefix: "sendgate"}}},
		{"store: {dynamodb: {region: eu-west-1}}\n", map[string]string{"SENDGATE_STORE_DYNAMODB_REGION": "us-east-1"},
			config.Store{DynamoDB: &config.DynamoDB{Region: "us-east-1", TablePrefix: "sendgate"}}},
		{"", map[string]string{"SENDGATE_STORE_DYNAMODB_REGION": "eu-west-1"},
			config.Store{DynamoDB: &config.DynamoDB{Region: "eu-west-1", TablePrefix: "sendgate"}}},
		{"", map[string]string{"SENDGATE_STORE_DYNAMODB_CREATE": "false"}, config.Store{DynamoDB: &config.DynamoDB{TablePrefix: "sendgate"}}},
	} {
		if got := load(t, unstored+c.store, c.variables).Store; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s%v: %+v %+v, want %+v", c.store, c.variables, got, got.DynamoDB, c.want)
		}
	}
	const (
		none = "a store is required: bbolt: {path: sendgate.db} for one gate, or dynamodb: {region: eu-west-1} for several"
		both = "bbolt and dynamodb are both given, here or by variables SENDGATE_STORE_…: keep one"
	)
	refused(t, unstored, nil, "gate.yaml:1: store: "+none)
	for _, empty := range []string{"{}", "{bbolt: {}}", "{dynamodb: null}", "{bbolt: null, dynamodb: }", `{bbolt: {path: ""}}`} {
		refused(t, unstored+"store: "+empty+"\n", nil, "gate.yaml:3: store: "+none)
	}
	refused(t, unstored+"store: {bbolt: {path: s}, dynamodb: {}}\n", nil, "gate.yaml:3: store: "+both)
	refused(t, least, map[string]string{"SENDGATE_STORE_DYNAMODB_REGION": "eu-west-1"}, "gate.yaml:3: store: "+both)
	refused(t, onDynamo, map[string]string{"SENDGATE_STORE_BBOLT_PATH": "s"}, "gate.yaml:3: store: "+both)
}

func TestStoresThatAreRefused(t *testing.T) {
	const endpoint = "must be http://host:port or https://host:port, with or without the port, and nothing else"
	for text, want := range map[string]string{
		"regions: eu":                               `store.dynamodb: there is no member "regions"`,
		"region: eu-west-":                          `store.dynamodb.region: must be the name of a region, such as eu-west-1, not "eu-west-"`,
		"region: eu/west":                           `store.dynamodb.region: must be the name of a region, such as eu-west-1, not "eu/west"`,
		"endpoint: 127.0.0.1:4567":                  "store.dynamodb.endpoint: " + endpoint,
		"table_prefix: a/b":                         "store.dynamodb.table_prefix: must be 1 to 240 letters, digits, `_`, `-` and `.`, not \"a/b\"",
		"table_prefix: " + strings.Repeat("a", 241): "store.dynamodb.table_prefix: must be 1 to 240 letters",
		"create: yes":                               "store.dynamodb.create: must be true or false",
		"scan_units: 1.5":                           "store.dynamodb.scan_units: must be a whole number",
		"scan_units: -1":                            "store.dynamodb.scan_units: must be 0 (the store's own) or more, not -1",
		"access_key_id: AK":                         `store.dynamodb: there is no member "access_key_id"`,
	} {
		refused(t, unstored+"store:\n  dynamodb:\n    "+text+"\n", nil, "gate.yaml:5: "+want)
	}
	for _, good := range []string{
		"http://localhost", "https://dynamodb.eu-west-1.amazonaws.com", "http://127.0.0.1:4567", "http://[::1]:8000", "https://d:65535/", "HTTP://Host:1",
	} {
		if c := load(t, onDynamo, map[string]string{"SENDGATE_STORE_DYNAMODB_ENDPOINT": good}); c.Store.DynamoDB.Endpoint != good {
			t.Errorf("%+v", c.Store.DynamoDB)
		}
	}
	for _, bad := range []string{
		"localhost", "localhost:4567", "ftp://d", "http://", "http://:4567", "http://d:", "http://d:0", "http://d:65536", "http://d:x", "http://d/path",
		"http://d//", "http://d?a=b", "http://d?", "http://d#f", "http://d#", "http://user:pass@d", "http:d", "http:/d", "http://a b", "://d", "//d", "http://d\n",
	} {
		refused(t, onDynamo, map[string]string{"SENDGATE_STORE_DYNAMODB_ENDPOINT": bad}, "environment: SENDGATE_STORE_DYNAMODB_ENDPOINT: "+endpoint)
	}
	for set, want := range map[string]string{
		"CREATE=maybe":   `SENDGATE_STORE_DYNAMODB_CREATE: "maybe" is not understood`,
		"SCAN_UNITS=-5":  "SENDGATE_STORE_DYNAMODB_SCAN_UNITS: must be 0 (the store's own) or more, not -5",
		"TABLE_PREFX=a":  "SENDGATE_STORE_DYNAMODB_TABLE_PREFX overrides nothing; is SENDGATE_STORE_DYNAMODB_TABLE_PREFIX meant?",
		"REGION=a b":     "SENDGATE_STORE_DYNAMODB_REGION: must be the name of a region",
		"TABLE_PREFIX=é": "SENDGATE_STORE_DYNAMODB_TABLE_PREFIX: must be 1 to 240 letters",
	} {
		name, value, _ := strings.Cut(set, "=")
		refused(t, unstored, map[string]string{"SENDGATE_STORE_DYNAMODB_" + name: value}, "environment: "+want)
	}
}
