package deploy_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

// TestTheStack runs what docker-compose.yml runs, without the containers: Redis
// and dynalite started as it does, and the programs of the image in its root
// folder, as its user, with its environment and its files, on gate.yaml. Only
// the addresses differ.
func TestTheStack(t *testing.T) {
	project := composed(t)
	redis, dynamodb := startRedis(t), startDynalite(t, t.TempDir())
	c := newContainer(t, "/var/lib/sendgate/filters", "/var/cache/sendgate")
	for _, name := range []string{"gate", "bloombuilder"} {
		for _, v := range project.Services[name].Volumes {
			if v.Type == types.VolumeTypeBind {
				c.mount(t, v.Source, v.Target)
			}
		}
	}
	env := func(name string) (vars []string) {
		for key, value := range project.Services[name].Environment {
			vars = append(vars, key+"="+*value)
		}
		return append(vars, "SENDGATE_LISTEN=127.0.0.1:0", "SENDGATE_REDIS_ADDRS="+redis, "SENDGATE_STORE_DYNAMODB_ENDPOINT=http://"+dynamodb.addr)
	}
	command := project.Services["gate"].Command
	if command[0] != "gate" {
		t.Fatalf("the gate is run by %q", command)
	}
	g := c.start(t, env("gate"), command[1:]...)
	const check = `{"notification_id":"n_1","user_id":"u_1","topic":"newsletter","channel":"email"}`
	if answer := g.send(http.MethodPost, "/v1/check", check); answer["verdict"] != "allow" || answer["degraded"] != false {
		t.Errorf("before, the answer is %v", answer)
	}
	g.send(http.MethodPatch, "/v1/users/u_1/preferences", `{"preferences":[{"topic":"newsletter","channel":"email","enabled":false}]}`)

	command = slices.Concat(project.Services["bloombuilder"].Command, []string{"--once"})
	builder := c.command(t, env("bloombuilder"), command[0], command[1:]...)
	if out, err := builder.Output(); err != nil {
		t.Fatalf("%q: %v\n%s%s", command, err, out, builder.log)
	}
	loaded := regexp.MustCompile(`(?m)^sendgate_filter_generation [1-9]`)
	until(t, "the gate has the filter", func() bool { return loaded.MatchString(g.metrics()) })
	if answer := g.send(http.MethodPost, "/v1/check", check); answer["verdict"] != "suppress" || answer["reason"] != "opted_out" {
		t.Errorf("after, the answer is %v", answer)
	}
	exposed(t, g.metrics())
	g.stop()
}

// exposed holds what a gate exposes to the metrics that its source has: each
// that alerts ask for is found there, and so has to be spelled alike.
func exposed(t *testing.T, text string) {
	t.Helper()
	known := metrics(t)
	found := 0
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "# TYPE sendgate_")
		if !ok {
			continue
		}
		found++
		name, _, _ = strings.Cut(name, " ")
		if _, ok := known["sendgate_"+name]; !ok {
			t.Errorf("the gate has sendgate_%s, which was not found in its source", name)
		}
	}
	if found < 10 {
		t.Errorf("the gate has only %d metrics", found)
	}
}
