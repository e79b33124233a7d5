package redistest

import (
	"net"
	"strconv"
	"testing"
)

// StartTLS starts a Redis that takes connections by TLS too, with a certificate
// and key of its own and, from clients, certificates of a CA. All are PEM files.
func StartTLS(t testing.TB, cert, key, clientCA string) *Server {
	t.Helper()
	return start(t, func(s *Server) {
		s.tlsPort = freePort(t)
		s.extra = []string{"--tls-port", strconv.Itoa(s.tlsPort), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", clientCA}
	})
}

// TLSAddr is the host:port of a server that StartTLS started.
func (s *Server) TLSAddr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.tlsPort)) }
