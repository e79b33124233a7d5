package redisconn

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Options say where a Redis is, and who asks it.
type Options struct {
	Mode     string   `yaml:"mode" env:"MODE"`         // `single`, `sentinel` or `cluster`; empty is single
	Addrs    []string `yaml:"addrs" env:"ADDRS"`       // host:port, of the Sentinels in that mode
	Username string   `yaml:"username" env:"USERNAME"` // ACL user, optional
	Password string   `yaml:"password" env:"PASSWORD"`
	PoolSize int      `yaml:"pool_size" env:"POOL_SIZE"` // connections per node; 0 is the default of 64

	MasterName       string `yaml:"master_name" env:"MASTER_NAME"`             // as the Sentinels call it
	SentinelUsername string `yaml:"sentinel_username" env:"SENTINEL_USERNAME"` // of the Sentinels themselves, optional
	SentinelPassword string `yaml:"sentinel_password" env:"SENTINEL_PASSWORD"`

	TLS           bool   `yaml:"tls" env:"TLS"`                         // of Sentinels too
	TLSCA         string `yaml:"tls_ca" env:"TLS_CA"`                   // PEM file of certificates to trust beside the system's
	TLSCert       string `yaml:"tls_cert" env:"TLS_CERT"`               // PEM file of this client's own certificate
	TLSKey        string `yaml:"tls_key" env:"TLS_KEY"`                 // PEM file of its key
	TLSServerName string `yaml:"tls_server_name" env:"TLS_SERVER_NAME"` // in their certificates; empty: the host of the address
}

const (
	modeSingle   = "single"
	modeSentinel = "sentinel"
	modeCluster  = "cluster"
)

const (
	defaultPoolSize = 64
	maxPoolSize     = 10_000
)

// Validate says what is wrong with the options, as `member: what`. It opens no
// file.
func (o Options) Validate() error {
	switch {
	case o.Mode != "" && o.Mode != modeSingle && o.Mode != modeSentinel && o.Mode != modeCluster:
		return fmt.Errorf("mode: must be single, sentinel or cluster, not %.64q", o.Mode)
	case len(o.Addrs) == 0 && o.Mode == modeSentinel:
		return errors.New("addrs: at least one host:port of a Sentinel is needed")
	case len(o.Addrs) == 0:
		return errors.New("addrs: at least one host:port is needed")
	case (o.Mode == "" || o.Mode == modeSingle) && len(o.Addrs) > 1:
		return errors.New("addrs: a single Redis has one address")
	case o.Username != "" && o.Password == "":
		return errors.New("username: a user needs a password; without one nobody would be logged in")
	case o.PoolSize < 0 || o.PoolSize > maxPoolSize:
		return fmt.Errorf("pool_size: must be from 0 to %d", maxPoolSize)
	}
	for i, addr := range o.Addrs {
		if err := ValidateAddr(addr); err != nil {
			return fmt.Errorf("addrs[%d]: %w", i, err)
		}
		if slices.Contains(o.Addrs[:i], addr) {
			return fmt.Errorf("addrs[%d]: %q is named twice", i, addr)
		}
	}
	if err := o.validateSentinel(); err != nil {
		return err
	}
	return o.validateTLS()
}

func (o Options) validateSentinel() error {
	if o.Mode == modeSentinel {
		switch {
		case o.MasterName == "":
			return errors.New("master_name: what the Sentinels call the master, such as mymaster, is needed")
		case strings.ContainsAny(o.MasterName, " \t\r\n"):
			return fmt.Errorf("master_name: must be one word, not %.64q", o.MasterName)
		case o.SentinelUsername != "" && o.SentinelPassword == "":
			return errors.New("sentinel_username: a user needs a password; without one nobody would be logged in")
		}
		return nil
	}
	for _, m := range []member{{"master_name", o.MasterName}, {"sentinel_username", o.SentinelUsername}, {"sentinel_password", o.SentinelPassword}} {
		if m.value != "" {
			return fmt.Errorf("%s: is of mode: sentinel alone", m.name)
		}
	}
	return nil
}

func (o Options) validateTLS() error {
	if !o.TLS {
		for _, m := range []member{{"tls_ca", o.TLSCA}, {"tls_cert", o.TLSCert}, {"tls_key", o.TLSKey}, {"tls_server_name", o.TLSServerName}} {
			if m.value != "" {
				return fmt.Errorf("%s: is of no use without tls: true", m.name)
			}
		}
	}
	switch {
	case o.TLSCert != "" && o.TLSKey == "":
		return errors.New("tls_cert: a certificate needs its key, in tls_key")
	case o.TLSKey != "" && o.TLSCert == "":
		return errors.New("tls_key: a key needs its certificate, in tls_cert")
	}
	return nil
}

// member is a member of the options with its value.
type member struct{ name, value string }

// ValidateAddr refuses what is not host:port with a port from 1 to 65535.
func ValidateAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || n == 0 || host == "" || strings.ContainsAny(host, " \t\r\n/@") {
		return fmt.Errorf("must be host:port, not %.64q", addr)
	}
	return nil
}
