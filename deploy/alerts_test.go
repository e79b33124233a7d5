package deploy_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestPrometheusYML loads the file as Prometheus does, and holds it to the
// services of docker-compose.yml.
func TestPrometheusYML(t *testing.T) {
	c, err := config.LoadFile("prometheus.yml", false, promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	project := composed(t)
	if len(c.ScrapeConfigs) != 1 || c.ScrapeConfigs[0].JobName != job {
		t.Fatalf("the jobs are %v", c.ScrapeConfigs)
	}
	for _, d := range c.ScrapeConfigs[0].ServiceDiscoveryConfigs {
		static, ok := d.(discovery.StaticConfig)
		if !ok || len(static) != 1 || len(static[0].Targets) != 1 {
			t.Fatalf("targets are found by %v", d)
		}
		host, port, _ := strings.Cut(string(static[0].Targets[0][model.AddressLabel]), ":")
		if _, ok := project.Services[host]; !ok || port != "8080" {
			t.Errorf("%s:%s is no service", host, port)
		}
	}
	for _, file := range c.RuleFiles {
		if !slices.ContainsFunc(project.Services["prometheus"].Volumes, mountOf(file, "alerts.yml")) {
			t.Errorf("%s is not mounted", file)
		}
	}
	if !slices.ContainsFunc(project.Services["prometheus"].Volumes, mountOf("/etc/prometheus/prometheus.yml", "prometheus.yml")) {
		t.Error("prometheus.yml is not mounted where the image looks for it")
	}
}

// mountOf tells whether a volume is a file of this folder on a path.
func mountOf(target, file string) func(types.ServiceVolumeConfig) bool {
	return func(v types.ServiceVolumeConfig) bool {
		return v.Target == target && filepath.Base(v.Source) == file
	}
}

// TestPrometheusIsTheOneThatIsTested: v0.316.0 of the module is release 3.16.0.
func TestPrometheusIsTheOneThatIsTested(t *testing.T) {
	found := regexp.MustCompile(`github.com/prometheus/prometheus v0\.(\d)(\d\d)\.(\d+)`).FindStringSubmatch(read(t, "go.mod"))
	if found == nil {
		t.Fatal("go.mod has no Prometheus")
	}
	want := "prom/prometheus:v" + found[1] + "." + strings.TrimPrefix(found[2], "0") + "." + found[3]
	if got := composed(t).Services["prometheus"].Image; got != want {
		t.Errorf("%s is run, and %s is tested with", got, want)
	}
}

// alerts are the rules of alerts.yml, parsed strictly.
func alerts(t *testing.T) (rules []rulefmt.Rule) {
	t.Helper()
	groups, errs := rulefmt.ParseFile("alerts.yml", false, model.UTF8Validation, newParser(), promslog.NewNopLogger())
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range alerts(t) {
		if r.Alert == "" || seen[r.Alert] || !strings.HasPrefix(r.Alert, "Sendgate") {
			t.Errorf("alert %q is there twice, or of somebody else", r.Alert)
		}
		seen[r.Alert] = true
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || len(r.Annotations["description"]) < 100 {
			t.Errorf("%s does not say what to do", r.Alert)
		}
	}
	text := read(t, "alerts.yml")
	for _, name := range regexp.MustCompile(`\bSendgate[A-Z]\w+`).FindAllString(text, -1) {
		if !seen[name] {
			t.Errorf("alerts.yml speaks of %s, which it does not have", name)
		}
	}
	known := metrics(t)
	for _, name := range regexp.MustCompile(`\bsendgate_\w+`).FindAllString(text, -1) {
		if _, ok := known[base(name)]; !ok {
			t.Errorf("alerts.yml speaks of %s, which no gate has", name)
		}
	}
}

// base is a metric's name as it was registered, of one of its series.
func base(series string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		series = strings.TrimSuffix(series, suffix)
	}
	return series
}

// TestEveryAlertAsksForWhatThereIs holds the metrics, labels and values of the
// expressions to those of the source. A slip there would be an alert that never
// fires.
func TestEveryAlertAsksForWhatThereIs(t *testing.T) {
	known, words := metrics(t), literals(t)
	for _, r := range alerts(t) {
		expr, err := newParser().ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		labelled := map[string]bool{"job": true, "instance": true, "le": true}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			s, ok := node.(*parser.VectorSelector)
			if !ok || s.Name == "up" {
				return nil
			}
			names, ok := known[base(s.Name)]
			if !ok {
				t.Errorf("%s asks for %s, which no gate has", r.Alert, s.Name)
			}
			for _, name := range names {
				labelled[name] = true
			}
			for _, m := range s.LabelMatchers {
				if m.Name == model.MetricNameLabel || !ok {
					continue
				}
				if !slices.Contains(names, m.Name) {
					t.Errorf("%s asks for label %s, and %s has %v", r.Alert, m.Name, s.Name, names)
				}
				for _, value := range values(m) {
					if !words[value] {
						t.Errorf("%s asks for %s, which nothing says", r.Alert, m)
					}
				}
			}
			return nil
		})
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if a, ok := node.(*parser.AggregateExpr); ok {
				for _, name := range a.Grouping {
					if !labelled[name] {
						t.Errorf("%s sums by %s, which nothing has", r.Alert, name)
					}
				}
			}
			return nil
		})
	}
}

// values are what a matcher names one by one.
func values(m *labels.Matcher) []string {
	switch {
	case m.Value == "true" || m.Value == "false":
		return nil
	case m.Type == labels.MatchRegexp && strings.ContainsAny(m.Value, ".*+["):
		return nil
	}
	return strings.Split(m.Value, "|")
}

// TestTheNumbersOfAlertsAreTheConfigurations: two thresholds repeat defaults.
func TestTheNumbersOfAlertsAreTheConfigurations(t *testing.T) {
	source := read(t, filepath.Join(root, "config", "filter.go"))
	for _, name := range []string{"MaxAge: time.Hour", `Schedule: "*/15 * * * *"`, "MaxFalsePositive: 0.001"} {
		if !strings.Contains(source, name) {
			t.Errorf("%s is no default any more: look at alerts.yml", name)
		}
	}
	if got := slices.Sorted(maps.Keys(metrics(t))); len(got) < 15 {
		t.Errorf("the metrics are %v", got)
	}
}
