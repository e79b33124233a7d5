package redisconn_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/redisconn"
)

// authority is a CA of a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	template := a.template("a CA")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert, a.key = template, a.newKey()
	a.file, _ = a.issue("ca", template, a.key)
	return a
}

func (a *authority) template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// of makes a certificate for a host name, or for 127.0.0.1 if that is empty.
func (a *authority) of(file, host string) (certFile, keyFile string) {
	a.t.Helper()
	template := a.template(file)
	if host == "" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	} else {
		template.DNSNames = []string{host}
	}
	return a.issue(file, template, a.newKey())
}

func (a *authority) issue(file string, template *x509.Certificate, key *ecdsa.PrivateKey) (certFile, keyFile string) {
	a.t.Helper()
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(file+".crt", "CERTIFICATE", cert), a.write(file+".key", "EC PRIVATE KEY", private)
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

func TestTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.of("server", "")
	own, ownKey := ca.of("client", "gate")
	foreign, foreignKey := other.of("foreign", "gate")
	server := redistest.StartTLS(t, cert, key, ca.file)
	cert, key = ca.of("named", "redis.internal")
	named := redistest.StartTLS(t, cert, key, ca.file)
	for name, c := range map[string]struct {
		server *redistest.Server
		change func(*redisconn.Options)
		want   string // in the error
	}{
		"trusted":                 {server, func(*redisconn.Options) {}, ""},
		"trusted by its name":     {named, func(o *redisconn.Options) { o.TLSServerName = "redis.internal" }, ""},
		"not of the address":      {named, func(*redisconn.Options) {}, "127.0.0.1"},
		"not of that name":        {named, func(o *redisconn.Options) { o.TLSServerName = "other" }, "not other"},
		"another CA":              {server, func(o *redisconn.Options) { o.TLSCA = other.file }, "certificate signed by unknown authority"},
		"the system's CAs alone":  {server, func(o *redisconn.Options) { o.TLSCA = "" }, "certificate signed by unknown authority"},
		"no client certificate":   {server, func(o *redisconn.Options) { o.TLSCert, o.TLSKey = "", "" }, "certificate required"},
		"a foreign client":        {server, func(o *redisconn.Options) { o.TLSCert, o.TLSKey = foreign, foreignKey }, "tls: "},
		"in clear where TLS is":   {server, func(o *redisconn.Options) { *o = redisconn.Options{Addrs: o.Addrs} }, ""},
		"TLS where none is given": {server, func(o *redisconn.Options) { o.Addrs[0] = server.Addr() }, "by TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			o := redisconn.Options{Addrs: []string{c.server.TLSAddr()}, TLS: true, TLSCA: ca.file, TLSCert: own, TLSKey: ownKey}
			c.change(&o)
			client := open(t, o)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := client.Ping(ctx).Err()
			fails := c.want != "" || !o.TLS
			if (err != nil) != fails || err != nil && (ctx.Err() != nil || redisconn.Answered(err) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTLSFilesThatAreRefused(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.of("own", "")
	_, another := ca.of("another", "")
	for want, o := range map[string]redisconn.Options{
		"tls_ca: open /nowhere: no such file":                     {TLSCA: "/nowhere"},
		"tls_ca: " + key + " holds no certificate in PEM form":    {TLSCA: key},
		"tls_cert: with tls_key: open /nowhere: no such file":     {TLSCert: "/nowhere", TLSKey: key},
		"tls_cert: with tls_key: tls: private key does not match": {TLSCert: cert, TLSKey: another},
		"tls_cert: with tls_key: tls: found a certificate rather": {TLSCert: cert, TLSKey: cert},
	} {
		o.Addrs, o.TLS = []string{"127.0.0.1:1"}, true
		if client, err := redisconn.Open(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, %v, want %s", client, err, want)
		}
	}
}
