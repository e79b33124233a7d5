package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/sendgate/sendgate/internal/programs"
)

// bareAnswer in the environment has the binary of this test serve nothing but
// that.
const bareAnswer = "SENDGATE_BENCH_ANSWER"

func TestMain(m *testing.M) {
	if answer := os.Getenv(bareAnswer); answer != "" {
		if err := serveBare([]byte(answer)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveBare answers every check with the same body, by a handler that does
// nothing else.
func serveBare(answer []byte) error {
	e := echo.New()
	e.POST("/v1/check", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, answer) })
	e.GET("/processor", func(c echo.Context) error {
		used, err := ownProcessor()
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, used.String())
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: e, ReadHeaderTimeout: time.Second}
	return server.Serve(listener)
}

// bare is such a server, as a process of its own.
type bare struct{ url string }

func startBare(t testing.TB, answer []byte) bare {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := programs.Start(t, programs.Options{Greets: true, Environment: []string{bareAnswer + "=" + string(answer)}}, self)
	_, address, ok := strings.Cut(p.First, "http://")
	if !ok {
		t.Fatalf("the bare handler says %q", p.First)
	}
	return bare{"http://" + strings.TrimSpace(address)}
}

// processor is how much processor time it has used.
func (b bare) processor(ctx context.Context) (time.Duration, error) {
	_, body, err := get(ctx, b.url+"/processor")
	if err != nil {
		return 0, err
	}
	return time.ParseDuration(string(body))
}
