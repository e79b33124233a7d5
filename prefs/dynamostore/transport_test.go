package dynamostore

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sendgate/sendgate/internal/redistest"
)

// TestCloseLetsGoOfConnections counts them where they end.
func TestCloseLetsGoOfConnections(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{}")
	}))
	var open atomic.Int64
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		open.Add(map[http.ConnState]int64{http.StateNew: 1, http.StateClosed: -1}[state])
	}
	server.Start()
	defer server.Close()
	s, err := newStore(Options{TablePrefix: "t", Config: aws.Config{
		Region: "r", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Get(t.Context(), "u"); err != nil || r.Revision != 0 || open.Load() == 0 {
		t.Fatalf("%+v, %v, %d connections", r, err, open.Load())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	redistest.Until(t, "the connection is closed", func() bool { return open.Load() == 0 })
}
