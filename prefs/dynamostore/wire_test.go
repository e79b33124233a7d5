package dynamostore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sendgate/sendgate/internal/dynamotest"
)

// wire stands between a store and a real server. What the server cannot be made
// to do is done here, to what goes over the wire.
type wire struct {
	server *httptest.Server
	behind string // the real server's URL

	mu    sync.Mutex
	calls []string
	fault func(*exchange)
}

// exchange is one call on its way. A fault may change what is asked, answer in
// the server's place, or see to it that the answer is lost.
type exchange struct {
	ctx    context.Context // ends when the caller has gone
	action string
	ask    map[string]any
	status int // with answer, in the server's place
	answer string
	header http.Header // of that answer
	lose   bool        // the answer, after the server has done its part
	sent   http.Header
}

// refuse answers as DynamoDB does when it refuses.
func (e *exchange) refuse(code, message string) {
	e.status = http.StatusBadRequest
	e.answer = fmt.Sprintf(`{"__type": "com.amazonaws.dynamodb.v20120810#%s", "message": %q}`, code, message)
}

// on puts a wire before a server, without any fault.
func on(t *testing.T, behind *dynamotest.Server) *wire {
	t.Helper()
	w := &wire{behind: behind.Endpoint()}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

// open opens a store over the wire.
func (w *wire) open(t *testing.T) *Store {
	t.Helper()
	return openAt(t, Options{Config: dynamotest.Config(w.server.URL), TablePrefix: "t", Create: true})
}

// set puts a fault in the place of the one before, and forgets the calls so far.
func (w *wire) set(fault func(*exchange)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault, w.calls = fault, nil
}

// sent lists the calls since the last set, each as "action table".
func (w *wire) sent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// count tells how many calls of an action were sent since the last set.
func (w *wire) count(action string) (n int) {
	for _, call := range w.sent() {
		if strings.HasPrefix(call, action+" ") {
			n++
		}
	}
	return n
}

func (w *wire) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	_, action, _ := strings.Cut(in.Header.Get("X-Amz-Target"), ".")
	e := &exchange{ctx: in.Context(), action: action, header: out.Header(), sent: in.Header}
	body, err := io.ReadAll(in.Body)
	if err == nil {
		err = json.Unmarshal(body, &e.ask)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.mu.Lock()
	w.calls = append(w.calls, fmt.Sprintf("%s %v", action, e.ask["TableName"]))
	fault := w.fault
	w.mu.Unlock()
	if fault != nil {
		fault(e)
	}
	if e.status == 0 {
		w.pass(e)
	}
	if e.lose {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	out.WriteHeader(e.status)
	_, _ = io.WriteString(out, e.answer) // a caller who has gone is not told
}

// pass has the real server answer. It does not look at signatures, so that what
// is asked may have been changed.
func (w *wire) pass(e *exchange) {
	body, err := json.Marshal(e.ask)
	if err != nil {
		panic(err)
	}
	r, err := http.NewRequestWithContext(e.ctx, http.MethodPost, w.behind, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header, r.Close = e.sent.Clone(), true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	e.status, e.answer = answer.StatusCode, string(text)
}

// hangs holds a call until its caller has gone.
func hangs(e *exchange) {
	<-e.ctx.Done()
	e.lose, e.status = true, http.StatusOK
}
