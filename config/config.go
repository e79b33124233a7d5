// Package config reads the configuration file that every program of Sendgate
// shares. Every value can be overridden from the environment: the variable is
// SENDGATE_ and the path of the member in capitals, such as
// SENDGATE_TIMEOUTS_REDIS.
package config

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
	"github.com/sendgate/sendgate/redisconn"
	"github.com/sendgate/sendgate/yamlfile"
)

// EnvPrefix begins the name of every variable that overrides a value.
const EnvPrefix = "SENDGATE_"

// CodeInvalidConfig marks a fault of the configuration. Field is the path of
// the member.
const CodeInvalidConfig sendgate.Code = "invalid_config"

// Config is the configuration. Paths in it are relative to the folder of the
// file.
type Config struct {
	Listen     string            `yaml:"listen" env:"LISTEN"`         // host:port
	Catalog    string            `yaml:"catalog" env:"CATALOG"`       // a file
	Namespace  string            `yaml:"namespace" env:"NAMESPACE"`   // of the keys in Redis
	Partitions int               `yaml:"partitions" env:"PARTITIONS"` // taken when the store is created
	Redis      redisconn.Options `yaml:"redis" envPrefix:"REDIS_"`
	CapsRedis  redisconn.Options `yaml:"caps_redis" envPrefix:"CAPS_REDIS_"` // without addrs: Redis
	Store      Store             `yaml:"store" envPrefix:"STORE_"`
	Timeouts   Timeouts          `yaml:"timeouts" envPrefix:"TIMEOUTS_"`
	Log        Log               `yaml:"log" envPrefix:"LOG_"`
}

// Store says where preferences are kept.
type Store struct {
	Bbolt Bbolt `yaml:"bbolt" envPrefix:"BBOLT_"`
}

// Bbolt is a store in one file of this machine.
type Bbolt struct {
	Path string `yaml:"path" env:"PATH"`
}

// Timeouts bound what a check waits for, each from 1ms to 10s.
type Timeouts struct {
	Redis time.Duration `yaml:"redis" env:"REDIS"`
	Store time.Duration `yaml:"store" env:"STORE"`
}

// Log says what is logged.
type Log struct {
	Level string `yaml:"level" env:"LEVEL"` // debug, info, warn or error
}

// SlogLevel is the level as package log/slog has it.
func (l Log) SlogLevel() (level slog.Level, err error) {
	err = level.UnmarshalText([]byte(l.Level))
	return level, err
}

// CapsBesideRecords tells whether caps live in the Redis of the records.
func (c *Config) CapsBesideRecords() bool { return len(c.CapsRedis.Addrs) == 0 }

// Default is what stands where a file says nothing.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:8080", Namespace: keyspace.DefaultNamespace, Partitions: keyspace.DefaultPartitions,
		Timeouts: Timeouts{Redis: 5 * time.Millisecond, Store: 50 * time.Millisecond},
		Log:      Log{Level: "info"},
	}
}

// Load reads a configuration file over the defaults, and the environment over
// it. Unknown members and values out of their range are refused, with their
// lines.
func Load(path string, environment map[string]string) (*Config, error) {
	c := Default()
	file, err := yamlfile.Read(path, &c)
	if err != nil {
		return nil, err
	}
	if err := env.ParseWithOptions(&c, env.Options{Prefix: EnvPrefix, Environment: environment}); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	if err := c.validate(); err != nil {
		return nil, file.Locate(err)
	}
	c.Catalog = relativeTo(path, c.Catalog)
	c.Store.Bbolt.Path = relativeTo(path, c.Store.Bbolt.Path)
	return &c, nil
}

func relativeTo(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

func (c *Config) validate() error {
	var errs sendgate.Errors
	fault := func(field, format string, args ...any) {
		errs.Add(sendgate.Errorf(CodeInvalidConfig, field, format, args...))
	}
	if c.Listen == "" {
		fault("listen", "host:port is required")
	}
	if c.Catalog == "" {
		fault("catalog", "the path of a catalog file is required")
	}
	if _, err := keyspace.New(c.Namespace, keyspace.DefaultPartitions); err != nil {
		fault("namespace", "%v", err)
	}
	if _, err := keyspace.New(keyspace.DefaultNamespace, c.Partitions); err != nil {
		fault("partitions", "%v", err)
	}
	if err := c.Redis.Validate(); err != nil {
		fault("redis", "%v", err)
	}
	if !c.CapsBesideRecords() {
		if err := c.CapsRedis.Validate(); err != nil {
			fault("caps_redis", "%v", err)
		}
	}
	if c.Store.Bbolt.Path == "" {
		fault("store", "a store is required, such as bbolt: {path: sendgate.db}")
	}
	for _, t := range []struct {
		field string
		value time.Duration
	}{{"timeouts.redis", c.Timeouts.Redis}, {"timeouts.store", c.Timeouts.Store}} {
		if t.value < time.Millisecond || t.value > 10*time.Second {
			fault(t.field, "must be from 1ms to 10s, not %v", t.value)
		}
	}
	if _, err := c.Log.SlogLevel(); err != nil {
		fault("log.level", "must be debug, info, warn or error, not %q", sendgate.Clip(c.Log.Level))
	}
	return errs.Err()
}
