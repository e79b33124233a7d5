package config

import (
	"cmp"
	"errors"
	"net/url"
	"strings"
	"time"
)

// Filter says how the filter of all opt-outs is built, where it is published,
// and what a gate does with it.
type Filter struct {
	// URL is the archive of built filters: file:///absolute/folder or
	// s3://bucket?region=…; empty is no filter.
	URL string `yaml:"url" env:"URL"`

	// The builder. The bound on false positives is one of a whole check, over
	// all keys that it asks for.
	Memory           Size    `yaml:"memory" env:"MEMORY"`                         // what a filter may take, 1MiB to 64GiB
	BuildMemory      Size    `yaml:"build_memory" env:"BUILD_MEMORY"`             // what keys may take while one is built, 1MiB to 64GiB; more are kept in WorkDir
	WorkDir          string  `yaml:"work_dir" env:"WORK_DIR"`                     // folder of the builder's files; empty: the system's temporary one
	MaxFalsePositive float64 `yaml:"max_false_positive" env:"MAX_FALSE_POSITIVE"` // none worse is published; 1e-12 to 0.01
	AimFalsePositive float64 `yaml:"aim_false_positive" env:"AIM_FALSE_POSITIVE"` // none better is needed; 1e-12 to MaxFalsePositive
	Schedule         string  `yaml:"schedule" env:"SCHEDULE"`                     // for ParseSchedule
	EarlyChanges     int     `yaml:"early_changes" env:"EARLY_CHANGES"`           // so many changes bring the next run forward; 0: never
	Keep             int     `yaml:"keep" env:"KEEP"`                             // how many published filters are kept, 1 to 100

	// The gate.
	Poll         time.Duration `yaml:"poll" env:"POLL"`                   // how often it looks for a new one unasked, 1s to 10m
	MaxAge       time.Duration `yaml:"max_age" env:"MAX_AGE"`             // an older one degrades the gate, 1m to 720h
	VerifySample float64       `yaml:"verify_sample" env:"VERIFY_SAMPLE"` // share of rejections that are verified in the background, 0 to 1
	CacheDir     string        `yaml:"cache_dir" env:"CACHE_DIR"`         // folder of private copies; empty: the system's temporary one
}

// What a filter may be at most and at least.
const (
	minMemory        = 1 << 20
	maxMemory        = 64 << 30
	minFalsePositive = 1e-12
	maxFalsePositive = 0.01
	maxKeep          = 100
	minPoll, maxPoll = time.Second, 10 * time.Minute
	minAge, maxAge   = time.Minute, 30 * 24 * time.Hour
)

// defaultAim is how few false positives are few enough: fewer would cost memory
// and spare nothing.
const defaultAim = 1e-6

func defaultFilter() Filter {
	return Filter{
		Memory: 512 << 20, BuildMemory: 512 << 20, MaxFalsePositive: 0.001, AimFalsePositive: defaultAim, Schedule: "*/15 * * * *",
		EarlyChanges: 100_000, Keep: 3, Poll: 10 * time.Second, MaxAge: time.Hour, VerifySample: 0.001,
	}
}

// complete sets the aim where nothing is said of it: a bound below the usual
// aim is one.
func (f *Filter) complete() {
	f.AimFalsePositive = cmp.Or(f.AimFalsePositive, min(defaultAim, f.MaxFalsePositive))
}

func (f *Filter) validate(fault report, s Store) {
	if f.URL != "" {
		if err := validateArchive(f.URL); err != nil {
			fault("filter.url", "%v", err)
		} else if s.DynamoDB == nil && s.Bbolt.Path != "" {
			fault("filter.url", "a filter needs store.dynamodb: it is built by a process of its own, and store.bbolt is a file that one process has open")
		}
	}
	if f.Memory < minMemory || f.Memory > maxMemory {
		fault("filter.memory", "must be from %v to %v, not %v", Size(minMemory), Size(maxMemory), f.Memory)
	}
	if f.BuildMemory < minMemory || f.BuildMemory > maxMemory {
		fault("filter.build_memory", "must be from %v to %v, not %v", Size(minMemory), Size(maxMemory), f.BuildMemory)
	}
	// Asked in this way round, a number that is none fails too.
	if !(f.MaxFalsePositive >= minFalsePositive && f.MaxFalsePositive <= maxFalsePositive) {
		fault("filter.max_false_positive", "must be from %v to %v, not %v", minFalsePositive, maxFalsePositive, f.MaxFalsePositive)
	} else if !(f.AimFalsePositive >= minFalsePositive && f.AimFalsePositive <= f.MaxFalsePositive) {
		fault("filter.aim_false_positive", "must be from %v to max_false_positive (%v), not %v", minFalsePositive, f.MaxFalsePositive, f.AimFalsePositive)
	}
	if _, err := ParseSchedule(f.Schedule); err != nil {
		fault("filter.schedule", "%v", err)
	}
	if f.EarlyChanges < 0 {
		fault("filter.early_changes", "must be 0 (never) or more, not %d", f.EarlyChanges)
	}
	if f.Keep < 1 || f.Keep > maxKeep {
		fault("filter.keep", "must be from 1 to %d, not %d", maxKeep, f.Keep)
	}
	if f.Poll < minPoll || f.Poll > maxPoll {
		fault("filter.poll", "must be from 1s to 10m, not %v", f.Poll)
	}
	if f.MaxAge < minAge || f.MaxAge > maxAge {
		fault("filter.max_age", "must be from 1m to 720h, not %v", f.MaxAge)
	}
	if !(f.VerifySample >= 0 && f.VerifySample <= 1) {
		fault("filter.verify_sample", "must be from 0 to 1, not %v", f.VerifySample)
	}
}

var (
	errArchive = errors.New("must be file:///folder or s3://bucket, such as file:///var/lib/sendgate/filters or s3://filters?region=eu-west-1")
	errObjects = errors.New("must name a bucket and no more: a folder in it is ?prefix=folder, another server ?endpoint=https://host")
	errFolder  = errors.New("the folder's path must be absolute: file:///var/lib/sendgate/filters, with three slashes")
	errSecret  = errors.New("must hold no credentials: the SDK finds them in the environment, its own files or the role of the machine")
)

// validateArchive takes the two kinds of archive that there are. What it
// refuses is not shown: it may hold a password.
func validateArchive(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Fragment != "": // a # in a path is written %23
		return errArchive
	case u.User != nil:
		return errSecret
	case u.Scheme == "s3" && u.Host != "":
		if strings.Trim(u.Path, "/") != "" || strings.Contains(u.Host, ":") {
			return errObjects
		}
		return nil
	case u.Scheme != "file" || u.RawQuery != "":
		return errArchive
	case u.Host != "" || u.Path == "":
		return errFolder
	}
	return nil
}
