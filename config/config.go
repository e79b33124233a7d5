// Package config reads the configuration file that every program of Sendgate
// shares. Every value can be overridden from the environment: the variable is
// SENDGATE_ and the path of the member in capitals, such as
// SENDGATE_TIMEOUTS_REDIS. A list is written with commas.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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
	Filter     Filter            `yaml:"filter" envPrefix:"FILTER_"`
	Timeouts   Timeouts          `yaml:"timeouts" envPrefix:"TIMEOUTS_"`
	// ShutdownDelay is how long a gate that is to end says that it is not ready
	// before it stops taking requests, 0 to 1m.
	ShutdownDelay time.Duration `yaml:"shutdown_delay" env:"SHUTDOWN_DELAY"`
	Log           Log           `yaml:"log" envPrefix:"LOG_"`
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
		Filter:   defaultFilter(),
		Timeouts: Timeouts{Redis: 5 * time.Millisecond, Store: 50 * time.Millisecond},
		Log:      Log{Level: "info"},
	}
}

// Load reads a configuration file over the defaults, and the environment over
// it. Unknown members and values out of their range are refused, with their
// lines.
func Load(path string, environment map[string]string) (*Config, error) {
	c := Default()
	c.Filter.AimFalsePositive = 0 // to see whether anything is said of it
	file, err := yamlfile.Read(path, &c)
	if err != nil {
		return nil, err
	}
	overridden, err := override(&c, environment)
	if err != nil {
		return nil, err
	}
	c.Store.complete()
	c.Filter.complete()
	if faults := c.validate(); len(faults) > 0 {
		return nil, located(file, overridden, faults)
	}
	for _, p := range c.paths() {
		*p = relativeTo(path, *p)
	}
	return &c, nil
}

// paths are all members that name a file or a folder.
func (c *Config) paths() []*string {
	paths := []*string{&c.Catalog, &c.Store.Bbolt.Path, &c.Filter.CacheDir, &c.Filter.WorkDir}
	for _, r := range []*redisconn.Options{&c.Redis, &c.CapsRedis} {
		paths = append(paths, &r.TLSCA, &r.TLSCert, &r.TLSKey)
	}
	return paths
}

// located says of every fault where the value stands: in which variable, or in
// which line of the file.
func located(file *yamlfile.File, overridden map[string]string, faults sendgate.Errors) error {
	var inFile sendgate.Errors
	var lines []string
	for _, fault := range faults {
		if name := variable(fault.Field); overridden[name] != "" {
			lines = append(lines, "environment: "+name+": "+fault.Detail)
		} else {
			inFile.Add(fault)
		}
	}
	if err := file.Locate(inFile.Err()); err != nil {
		lines = append([]string{err.Error()}, lines...)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// relativeTo is a path as seen from the folder of a file. None stays none.
func relativeTo(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// report takes one fault, at the path of a member.
type report func(field, format string, args ...any)

func (c *Config) validate() (errs sendgate.Errors) {
	var fault report = func(field, format string, args ...any) {
		errs.Add(sendgate.Errorf(CodeInvalidConfig, field, format, args...))
	}
	if err := validateListen(c.Listen); err != nil {
		fault("listen", "%v", err)
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
	errs.Add(redisFault("redis", c.Redis))
	if !c.CapsBesideRecords() || isSet(c.CapsRedis) {
		errs.Add(redisFault("caps_redis", c.CapsRedis))
	}
	c.Store.validate(fault)
	c.Filter.validate(fault, c.Store)
	for _, t := range []struct {
		field string
		value time.Duration
	}{{"timeouts.redis", c.Timeouts.Redis}, {"timeouts.store", c.Timeouts.Store}} {
		if t.value < time.Millisecond || t.value > 10*time.Second {
			fault(t.field, "must be from 1ms to 10s, not %v", t.value)
		}
	}
	if c.ShutdownDelay < 0 || c.ShutdownDelay > maxShutdownDelay {
		fault("shutdown_delay", "must be from 0s to %v, not %v", maxShutdownDelay, c.ShutdownDelay)
	}
	if !slices.Contains(logLevels, c.Log.Level) {
		fault("log.level", "must be debug, info, warn or error, not %q", sendgate.Clip(c.Log.Level))
	}
	return errs
}

const maxShutdownDelay = time.Minute

var logLevels = []string{"debug", "info", "warn", "error"}

// redisFault is what is wrong with a Redis, at the member that is wrong.
func redisFault(field string, o redisconn.Options) *sendgate.Error {
	err := o.Validate()
	if err == nil {
		return nil
	}
	member, detail, _ := strings.Cut(err.Error(), ": ")
	return sendgate.Errorf(CodeInvalidConfig, field+"."+member, "%s", detail)
}

// isSet tells whether anything is said of a Redis but where it is.
func isSet(o redisconn.Options) bool {
	o.Addrs = nil
	return !reflect.ValueOf(o).IsZero()
}

// validateListen refuses what cannot be listened on. No host is every address
// of the machine, and port 0 is any that is free.
func validateListen(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || strings.ContainsAny(host, " \t\r\n/@") {
		return fmt.Errorf("must be host:port, not %q", sendgate.Clip(addr))
	}
	return nil
}
