package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate/config"
)

func TestFilterMembers(t *testing.T) {
	for text, good := range map[string]func(config.Filter) bool{
		"memory: 1MiB":                     func(f config.Filter) bool { return f.Memory == 1<<20 },
		"memory: 1048576":                  func(f config.Filter) bool { return f.Memory == 1<<20 },
		"memory: \"1048576\"":              func(f config.Filter) bool { return f.Memory == 1<<20 },
		"memory: 64 GiB":                   func(f config.Filter) bool { return f.Memory == 64<<30 },
		"memory: 1.5GiB":                   func(f config.Filter) bool { return f.Memory == 3<<29 },
		"memory: 2gb":                      func(f config.Filter) bool { return f.Memory == 2_000_000_000 },
		"memory: null":                     func(f config.Filter) bool { return f.Memory == 512<<20 },
		"max_false_positive: 0.01":         func(f config.Filter) bool { return f.MaxFalsePositive == 0.01 && f.AimFalsePositive == 1e-6 },
		"max_false_positive: 1e-9":         func(f config.Filter) bool { return f.MaxFalsePositive == 1e-9 && f.AimFalsePositive == 1e-9 },
		"aim_false_positive: 0.001":        func(f config.Filter) bool { return f.AimFalsePositive == 0.001 },
		"verify_sample: 0":                 func(f config.Filter) bool { return f.VerifySample == 0 },
		"verify_sample: 1":                 func(f config.Filter) bool { return f.VerifySample == 1 },
		"early_changes: 0":                 func(f config.Filter) bool { return f.EarlyChanges == 0 },
		"keep: 100":                        func(f config.Filter) bool { return f.Keep == 100 },
		"poll: 1s":                         func(f config.Filter) bool { return f.Poll == time.Second },
		"max_age: 720h":                    func(f config.Filter) bool { return f.MaxAge == 30*24*time.Hour },
		"url: \"\"":                        func(f config.Filter) bool { return f.URL == "" },
		"url: file:///var/lib/f":           func(f config.Filter) bool { return f.URL == "file:///var/lib/f" },
		"url: \"s3://b?region=eu-west-1\"": func(f config.Filter) bool { return f.URL == "s3://b?region=eu-west-1" },
	} {
		if f := load(t, onDynamo+"filter:\n  "+text+"\n", nil).Filter; !good(f) {
			t.Errorf("%s: %+v", text, f)
		}
	}
	path := write(t, onDynamo+"filter: {cache_dir: cache}\n")
	c, err := config.Load(path, nil)
	if want := filepath.Join(filepath.Dir(path), "cache"); err != nil || c.Filter.CacheDir != want {
		t.Errorf("%q, %v", c.Filter.CacheDir, err)
	}
}

func TestFiltersThatAreRefused(t *testing.T) {
	const size = "must be a size, such as 512MiB or 2GB, not "
	for text, want := range map[string]string{
		"colour: red":              `filter: there is no member "colour"`,
		"memory: lots":             size + `"lots"`,
		"memory: 1,5GiB":           size + `"1,5GiB"`,
		"memory: -1MiB":            size + `"-1MiB"`,
		"memory: 1e9":              size,
		"memory: {mib: 5}":         size,
		"memory: [5MiB]":           size,
		"memory: true":             size,
		"memory: 9999999999GB":     size,
		"memory: 99999999999999TB": size,
		"memory: 1MB":              "filter.memory: must be from 1.0 MiB to 64 GiB, not 977 KiB",
		"memory: 0":                "filter.memory: must be from 1.0 MiB to 64 GiB, not 0 B",
		"build_memory: 1MB":        "filter.build_memory: must be from 1.0 MiB to 64 GiB, not 977 KiB",
		"memory: 65GiB":            "filter.memory: must be from 1.0 MiB to 64 GiB, not 65 GiB",
		"max_false_positive: 0":    "filter.max_false_positive: must be from 1e-12 to 0.01, not 0",
		"max_false_positive: 0.1":  "filter.max_false_positive: must be from 1e-12 to 0.01, not 0.1",
		"max_false_positive: .nan": "filter.max_false_positive: must be from 1e-12 to 0.01, not NaN",
		"max_false_positive: -1":   "filter.max_false_positive: must be from 1e-12 to 0.01, not -1",
		"max_false_positive: 1%":   "filter.max_false_positive: must be a number, such as 0.001",
		"aim_false_positive: 0.1":  "filter.aim_false_positive: must be from 1e-12 to max_false_positive (0.001), not 0.1",
		"aim_false_positive: -1":   "filter.aim_false_positive: must be from 1e-12 to max_false_positive (0.001), not -1",
		"aim_false_positive: .nan": "filter.aim_false_positive: must be from 1e-12 to max_false_positive (0.001), not NaN",
		"schedule: \"\"":           `filter.schedule: must be a schedule, such as "*/15 * * * *"`,
		"schedule: hourly":         `filter.schedule: must be five fields, such as "*/15 * * * *", or a name, such as @hourly: `,
		"schedule: TZ=":            "filter.schedule: must not name a zone: schedules are in UTC",
		"early_changes: -1":        "filter.early_changes: must be 0 (never) or more, not -1",
		"early_changes: 0.5":       "filter.early_changes: must be a whole number",
		"keep: 0":                  "filter.keep: must be from 1 to 100, not 0",
		"keep: 101":                "filter.keep: must be from 1 to 100, not 101",
		"poll: 999ms":              "filter.poll: must be from 1s to 10m, not 999ms",
		"poll: 11m":                "filter.poll: must be from 1s to 10m, not 11m0s",
		"max_age: 59s":             "filter.max_age: must be from 1m to 720h, not 59s",
		"max_age: 721h":            "filter.max_age: must be from 1m to 720h, not 721h0m0s",
		"verify_sample: 1.01":      "filter.verify_sample: must be from 0 to 1, not 1.01",
		"verify_sample: .nan":      "filter.verify_sample: must be from 0 to 1, not NaN",
		"cache_dir: 5":             "filter.cache_dir: must be text",
	} {
		refused(t, onDynamo+"filter:\n  "+text+"\n", nil, "gate.yaml:5: "+want)
	}
	for set, want := range map[string]string{
		"MEMORY=lots":            `SENDGATE_FILTER_MEMORY: "lots" is not understood`,
		"MEMORY=1":               "SENDGATE_FILTER_MEMORY: must be from 1.0 MiB to 64 GiB, not 1 B",
		"MAX_FALSE_POSITIVE=1%":  `SENDGATE_FILTER_MAX_FALSE_POSITIVE: "1%" is not understood`,
		"MAX_FALSE_POSITIVE=NaN": "SENDGATE_FILTER_MAX_FALSE_POSITIVE: must be from 1e-12 to 0.01, not NaN",
		"SCHEDULE=CRON_TZ=":      "SENDGATE_FILTER_SCHEDULE: must not name a zone: schedules are in UTC",
		"POLL=10":                `SENDGATE_FILTER_POLL: "10" is not understood`,
		"URL=s3://":              "SENDGATE_FILTER_URL: must be file:///folder or s3://bucket",
		"KEP=3":                  "SENDGATE_FILTER_KEP overrides nothing; is SENDGATE_FILTER_KEEP meant?",
	} {
		name, value, _ := strings.Cut(set, "=")
		refused(t, onDynamo, map[string]string{"SENDGATE_FILTER_" + name: value}, "environment: "+want)
	}
}

func TestArchives(t *testing.T) {
	const (
		kind   = "must be file:///folder or s3://bucket"
		folder = "the folder's path must be absolute: file:///var/lib/sendgate/filters, with three slashes"
	)
	for text, want := range map[string]string{
		"/var/lib/f": kind, "filters": kind, "mem://": kind, "s3://": kind, "s3:bucket": kind, "gs://bucket": kind, "http://host/f": kind,
		"s3://b/folder": "must name a bucket and no more", "s3://b:9000": "must name a bucket and no more",
		"file:///a#b": kind, "file:///a?b=c": kind, "s3://b%zz": kind, "file://": folder, "file:filters": folder, "file://filters": folder, "file://./filters": folder,
		"file://localhost/f": folder, "s3://AK:secret@bucket": "must hold no credentials", "file://u@/f": "must hold no credentials",
	} {
		refused(t, onDynamo+"filter:\n  keep: 3\n  url: \""+text+"\"\n", nil, "gate.yaml:6: filter.url: "+want)
	}
	// The builder is another process.
	refused(t, least+"filter: {url: \"file:///f\"}\n", nil, "gate.yaml:4: filter.url: a filter needs store.dynamodb: ")
	refused(t, least, map[string]string{"SENDGATE_FILTER_URL": "file:///f"}, "environment: SENDGATE_FILTER_URL: a filter needs store.dynamodb: ")
	load(t, least+"filter: {keep: 5}\n", nil)
}
