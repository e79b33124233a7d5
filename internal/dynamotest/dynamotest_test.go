package dynamotest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate/internal/dynamotest"
	"github.com/sendgate/sendgate/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post makes a call as a client does, but for a signature that anyone checks.
func post(t *testing.T, s *dynamotest.Server, action, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+action)
	r.Header.Set("X-Amz-Date", "20261130T120000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20261130/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=test")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestStartGivesAnEmptyDynamoDB(t *testing.T) {
	first, second := dynamotest.Start(t), dynamotest.Start(t)
	if first.Addr() == second.Addr() {
		t.Fatalf("both are at %s", first.Addr())
	}
	table := `{"TableName": "t-t", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
		"AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}]}`
	if status, said := post(t, first, "CreateTable", table); status != http.StatusOK {
		t.Fatalf("CreateTable: %d %s", status, said)
	}
	if _, said := post(t, first, "ListTables", "{}"); !strings.Contains(said, `"t-t"`) {
		t.Errorf("the first one lists %s", said)
	}
	if _, said := post(t, second, "ListTables", "{}"); said != `{"TableNames":[]}` {
		t.Errorf("the second one lists %s", said)
	}
}

// A client whose time is over goes away in the middle of a call. Dynalite by
// itself would end.
func TestServerOutlivesItsClients(t *testing.T) {
	s := dynamotest.Start(t)
	for range 20 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\n{")
		if err = errors.Join(err, conn.Close()); err != nil {
			t.Fatal(err)
		}
		if status, said := post(t, s, "ListTables", "{}"); status != http.StatusOK {
			t.Fatalf("ListTables: %d %s", status, said)
		}
	}
}

func TestConfig(t *testing.T) {
	c := dynamotest.Config("http://127.0.0.1:1")
	credentials, err := c.Credentials.Retrieve(t.Context())
	if err != nil || !credentials.HasKeys() || c.Region == "" || *c.BaseEndpoint != "http://127.0.0.1:1" {
		t.Errorf("%+v, %v", c, err)
	}
}

// fakeTB stands in for a test that is expected to fail.
type fakeTB struct {
	testing.TB
	said string
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestAMissingServerFails(t *testing.T) {
	for what, lose := range map[string]func(t *testing.T){
		"node":     func(t *testing.T) { t.Setenv("PATH", t.TempDir()) },
		"dynalite": func(t *testing.T) { t.Chdir(t.TempDir()) },
	} {
		t.Run(what, func(t *testing.T) {
			lose(t)
			fake := &fakeTB{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				dynamotest.Start(fake)
			}()
			<-done
			if !strings.Contains(fake.said, "make engines") || !strings.Contains(fake.said, what+" is not installed") {
				t.Fatalf("said %q", fake.said)
			}
		})
	}
}

// asChild makes this test binary one that starts a server and never ends.
const asChild = "DYNAMOTEST_CHILD"

func TestChild(t *testing.T) {
	if os.Getenv(asChild) == "" {
		return // only of use when run by the test below
	}
	fmt.Fprintln(os.Stdout, "addr "+dynamotest.Start(t).Addr())
	select {}
}

func TestNoServerOutlivesAKilledTest(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), asChild+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addr string
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		addr, _ = strings.CutPrefix(lines.Text(), "addr ")
	}
	reachable := func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	if addr == "" || !reachable() {
		t.Fatalf("the child's server is not at %q", addr)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	redistest.Until(t, "the child's server is gone", func() bool { return !reachable() })
}
