package config

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/sendgate/sendgate"
)

// Store says where preferences are kept: in one of its members.
type Store struct {
	Bbolt Bbolt `yaml:"bbolt" envPrefix:"BBOLT_"` // without a path: not there
	// DynamoDB is nil if it is not the store. It may be there and empty: the
	// SDK finds region and credentials by itself then. A variable of one of
	// its members makes it be there too.
	DynamoDB *DynamoDB `yaml:"dynamodb" envPrefix:"DYNAMODB_"`
}

// Bbolt is a store in one file of this machine, for one process.
type Bbolt struct {
	Path string `yaml:"path" env:"PATH"`
}

// DynamoDB is a store for any number of processes. Credentials are no part of
// the configuration: the SDK looks for them as in every program on it.
type DynamoDB struct {
	Region      string `yaml:"region" env:"REGION"`             // empty: the SDK looks for it
	Endpoint    string `yaml:"endpoint" env:"ENDPOINT"`         // http(s)://host[:port]; empty: the region's own
	TablePrefix string `yaml:"table_prefix" env:"TABLE_PREFIX"` // begins the name of every table
	Create      bool   `yaml:"create" env:"CREATE"`             // make tables that are missing
	// ScanUnits is how many read units a second all scans of a process may
	// take together; 0 leaves it to the store.
	ScanUnits int `yaml:"scan_units" env:"SCAN_UNITS"`
}

// DefaultTablePrefix begins the names of the tables where nothing else is said.
const DefaultTablePrefix = "sendgate"

// complete puts defaults in: what is there by default would make the store be
// there as well.
func (s *Store) complete() {
	if s.DynamoDB != nil {
		s.DynamoDB.TablePrefix = cmp.Or(s.DynamoDB.TablePrefix, DefaultTablePrefix)
	}
}

func (s *Store) validate(fault report) {
	switch bbolt := s.Bbolt.Path != ""; {
	case bbolt && s.DynamoDB != nil:
		fault("store", "bbolt and dynamodb are both given, here or by variables %s_…: keep one", variable("store"))
	case s.DynamoDB != nil:
		s.DynamoDB.validate(fault)
	case !bbolt:
		fault("store", "a store is required: bbolt: {path: sendgate.db} for one gate, or dynamodb: {region: eu-west-1} for several")
	}
}

var (
	legalRegion = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`) // it becomes a part of a host's name
	legalPrefix = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,240}$`)                       // as package dynamostore has it
)

func (d *DynamoDB) validate(fault report) {
	if d.Region != "" && !legalRegion.MatchString(d.Region) {
		fault("store.dynamodb.region", "must be the name of a region, such as eu-west-1, not %q", sendgate.Clip(d.Region))
	}
	if d.Endpoint != "" {
		if err := validateEndpoint(d.Endpoint); err != nil {
			fault("store.dynamodb.endpoint", "%v", err)
		}
	}
	if !legalPrefix.MatchString(d.TablePrefix) {
		fault("store.dynamodb.table_prefix", "must be 1 to 240 letters, digits, `_`, `-` and `.`, not %q", sendgate.Clip(d.TablePrefix))
	}
	if d.ScanUnits < 0 {
		fault("store.dynamodb.scan_units", "must be 0 (the store's own) or more, not %d", d.ScanUnits)
	}
}

// validateEndpoint takes http(s)://host[:port] and nothing beyond it. What it
// refuses is not shown: it may hold a password.
func validateEndpoint(text string) error {
	u, err := url.Parse(text)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		strings.EqualFold(u.Scheme+"://"+u.Host, strings.TrimSuffix(text, "/")) && validPort(u) {
		return nil
	}
	return errors.New("must be http://host:port or https://host:port, with or without the port, and nothing else")
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}
