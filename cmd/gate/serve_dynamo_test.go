package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/internal/cli"
	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/internal/redistest"
)

// onDynamo is a store at an endpoint, for configure. What the SDK finds on this
// machine has no say in it.
func onDynamo(t *testing.T, endpoint string, create bool) string {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	return fmt.Sprintf(`dynamodb: {region: eu-west-1, endpoint: "%s", create: %t}`, endpoint, create)
}

func TestTwoGatesShareADynamoDB(t *testing.T) {
	redis, dynamo := redistest.Start(t), dynamotest.Start(t)
	// Both find no tables at first, and make them, at the same time or not.
	store := onDynamo(t, dynamo.Endpoint(), true)
	a := start(t, "serve", "--config", configure(t, t.TempDir(), redis.Addr(), store))
	b := start(t, "serve", "--config", configure(t, t.TempDir(), redis.Addr(), store))
	obeys := func(g *process, topic, want string) {
		t.Helper()
		g.until(topic+" is "+want, func() bool {
			_, answer := g.send(http.MethodPost, "/v1/check", `{"notification_id":"n","user_id":"u","topic":"`+topic+`","channel":"push"}`)
			return fmt.Sprint(answer["verdict"], " ", answer["reason"]) == want
		})
	}
	must := func(g *process, method, path, body string) {
		t.Helper()
		if status, answer := g.send(method, path, body); status != http.StatusOK {
			t.Fatalf("%s %s: %d, %v\n%s", method, path, status, answer, g.stderr.String())
		}
	}
	obeys(b, "promotions", "allow default_on")
	must(a, http.MethodPatch, "/v1/users/u/preferences", `{"preferences":[{"topic":"promotions","channel":"push","enabled":false}]}`)
	obeys(a, "promotions", "suppress opted_out")
	obeys(b, "promotions", "suppress opted_out")
	must(b, http.MethodPatch, "/v1/users/u/preferences", `{"preferences":[{"topic":"promotions","channel":"push","enabled":true}]}`)
	obeys(b, "promotions", "allow opted_in")
	obeys(a, "promotions", "allow opted_in")
	must(a, http.MethodPost, "/v1/preferences/unsubscribe-all", `{"user_id":"u","reason":"user_requested"}`)
	obeys(b, "order_updates", "suppress global_unsubscribe")
	// One that comes later, without leave to make tables, reads it there.
	if err := a.stop(); err != nil {
		t.Errorf("it ended with %v\n%s", err, a.stderr.String())
	}
	c := start(t, "serve", "--config", configure(t, t.TempDir(), redistest.Start(t).Addr(), onDynamo(t, dynamo.Endpoint(), false)))
	obeys(c, "order_updates", "suppress global_unsubscribe")
	for _, g := range []*process{b, c} {
		if err := g.stop(); err != nil {
			t.Errorf("it ended with %v\n%s", err, g.stderr.String())
		}
	}
}

func TestServeWithoutItsDynamoDB(t *testing.T) {
	dynamo := dynamotest.Start(t)
	for store, want := range map[string][]string{
		onDynamo(t, "http://127.0.0.1:1", true):    {"store.dynamodb: ", "http://127.0.0.1:1", "refused"},
		onDynamo(t, dynamo.Endpoint(), false):      {"store.dynamodb: ", dynamo.Endpoint(), `there is no table "sendgate-records"`, "create: true"},
		"dynamodb: {}":                             {"store.dynamodb: ", "no region"},
		"bbolt: {path: a.db}, dynamodb: {}":        {"gate.yaml:5: store: bbolt and dynamodb are both given"},
		"dynamodb: {endpoint: \"127.0.0.1:8000\"}": {"gate.yaml:5: store.dynamodb.endpoint: must be http://host:port"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), []string{"serve", "--config", configure(t, t.TempDir(), "127.0.0.1:1", store)}, cli.Streams{Out: &out, Err: &out})
		for _, words := range want {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: no %q in %v", store, words, err)
			}
		}
	}
}
