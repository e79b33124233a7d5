package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// composed is docker-compose.yml, checked against the specification's schema
// and for consistency: an unknown member is an error.
func composed(t *testing.T) *types.Project {
	t.Helper()
	details, err := loader.LoadConfigFiles(t.Context(), []string{filepath.Join(root, "docker-compose.yml")}, root)
	if err != nil {
		t.Fatal(err)
	}
	details.Environment = types.Mapping{} // nothing of this machine's
	project, err := loader.LoadWithContext(t.Context(), *details)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestServices(t *testing.T) {
	project := composed(t)
	if want := []string{"bloombuilder", "dynamodb", "gate", "prometheus", "redis"}; !slices.Equal(project.ServiceNames(), want) {
		t.Errorf("the services are %v", project.ServiceNames())
	}
	published := []string{}
	for name, s := range project.Services {
		if s.Privileged || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s may do more than it has to", name)
		}
		if s.MemLimit <= 0 || s.PidsLimit <= 0 || s.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s has no bound on its memory or processes, or is not started again", name)
		}
		if s.Build == nil && !pinned.MatchString(s.Image) {
			t.Errorf("%s: %s is no exact version", name, s.Image)
		}
		if s.Build != nil && !slices.Contains(dockerfiles, filepath.ToSlash(s.Build.Dockerfile)) {
			t.Errorf("%s is built with %s, which no test looks at", name, s.Build.Dockerfile)
		}
		for _, port := range s.Ports {
			if published = append(published, name+":"+port.Published); port.HostIP != "127.0.0.1" {
				t.Errorf("%s is published on %q", name, port.HostIP)
			}
		}
	}
	if slices.Sort(published); !slices.Equal(published, []string{"gate:8080", "prometheus:9090"}) {
		t.Errorf("published are %v", published)
	}
}

// TestWhatIsMounted holds that every file of this repository that a container
// sees is there, and cannot be written to by it.
func TestWhatIsMounted(t *testing.T) {
	project := composed(t)
	writers := map[string][]string{}
	for name, s := range project.Services {
		for _, v := range s.Volumes {
			switch info, err := os.Stat(v.Source); {
			case v.Type == types.VolumeTypeVolume && !v.ReadOnly:
				writers[v.Source] = append(writers[v.Source], name)
			case v.Type == types.VolumeTypeVolume:
			case err != nil || info.IsDir() || !v.ReadOnly:
				t.Errorf("%s: %s is not there, no file, or can be written to: %v", name, v.Source, err)
			}
		}
	}
	for volume, names := range writers {
		if len(names) != 1 {
			t.Errorf("%v write to %s", names, volume)
		}
	}
	if len(writers) != len(project.Volumes) {
		t.Errorf("of volumes %v, written are %v", project.VolumeNames(), writers)
	}
}

// TestWhoWaitsForWhom holds that a service that another waits for can say that
// it is healthy.
func TestWhoWaitsForWhom(t *testing.T) {
	project := composed(t)
	for name, s := range project.Services {
		for other, d := range s.DependsOn {
			if d.Condition == types.ServiceConditionHealthy && len(healthCheck(t, project.Services[other])) == 0 {
				t.Errorf("%s waits until %s is healthy, which it never says", name, other)
			}
		}
	}
	for _, name := range []string{"gate", "bloombuilder"} {
		for _, other := range []string{"redis", "dynamodb"} {
			if project.Services[name].DependsOn[other].Condition != types.ServiceConditionHealthy {
				t.Errorf("%s does not wait for %s", name, other)
			}
		}
	}
}

// healthCheck is the program that asks a service how it is, with arguments:
// one of docker-compose.yml, or else of the image that is built.
func healthCheck(t *testing.T, s types.ServiceConfig) []string {
	t.Helper()
	var test []string
	if s.HealthCheck != nil {
		test = s.HealthCheck.Test
	} else if s.Build != nil {
		stages := stagesOf(t, filepath.ToSlash(s.Build.Dockerfile))
		for _, c := range all[*instructions.HealthCheckCommand](stages[len(stages)-1]) {
			test = c.Health.Test
		}
	}
	if len(test) == 0 {
		return nil
	}
	if test[0] != "CMD" {
		t.Errorf("the health check %q goes through a shell", test)
	}
	return test[1:]
}

// TestGateYAMLAndComposeAgree holds the names and folders of one file to the
// other.
func TestGateYAMLAndComposeAgree(t *testing.T) {
	project, text := composed(t), read(t, "gate.yaml")
	gate, builder := project.Services["gate"], project.Services["bloombuilder"]
	value := func(member string) string {
		found := regexp.MustCompile(`(?m)^\s*` + member + `: (\S+)`).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("gate.yaml has no %s", member)
		}
		return found[1]
	}
	mounted := func(s types.ServiceConfig, target string) types.ServiceVolumeConfig {
		for _, v := range s.Volumes {
			if v.Target == target {
				return v
			}
		}
		t.Errorf("nothing is mounted on %s of %s", target, s.Name)
		return types.ServiceVolumeConfig{}
	}
	filters := strings.TrimPrefix(value("url"), "file://")
	if r, w := mounted(gate, filters), mounted(builder, filters); r.Source != w.Source || w.ReadOnly || !r.ReadOnly {
		t.Errorf("the builder does not write where the gate reads: %v, %v", r, w)
	}
	if v := mounted(gate, value("cache_dir")); v.ReadOnly || v.Type != types.VolumeTypeVolume {
		t.Errorf("the gate's copies are on %v", v)
	}
	if v := mounted(builder, value("work_dir")); v.ReadOnly || v.Type != types.VolumeTypeVolume {
		t.Errorf("the builder's files are on %v", v)
	}
	for _, s := range []types.ServiceConfig{gate, builder} {
		mounted(s, value("catalog"))
		if i := slices.Index(s.Command, "--config"); i < 0 || len(s.Command) < i+2 {
			t.Errorf("%s runs %q", s.Name, s.Command)
		} else {
			mounted(s, s.Command[i+1])
		}
	}
	for _, address := range []string{`["redis:6379"]`, "endpoint: http://dynamodb:8000 ", "listen: 0.0.0.0:8080\n"} {
		if !strings.Contains(text, address) {
			t.Errorf("gate.yaml has no %s", address)
		}
	}
	redis := strings.Join(project.Services["redis"].Command, " ")
	if !strings.Contains(redis, "--appendonly yes") || !strings.Contains(redis, "--maxmemory-policy noeviction") {
		t.Errorf("Redis runs as %s, and may forget", redis)
	}
}
