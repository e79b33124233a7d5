package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/sendgate/sendgate"
)

// serving starts a server on a free port and stops it at the end.
func (st *stack) serving() (addr string, stop func() error) {
	st.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		st.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(st.t.Context())
	done := make(chan error, 1)
	go func() { done <- st.server.Serve(ctx, l) }()
	ended := false
	stop = func() error {
		cancel()
		if ended {
			return nil
		}
		ended = true
		return <-done
	}
	st.t.Cleanup(func() { _ = stop() })
	return l.Addr().String(), stop
}

// raw sends text over a connection of its own and returns the answer.
func (st *stack) raw(addr, text string) *answer {
	st.t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		st.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		st.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		st.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		st.t.Fatal(err)
	}
	return &answer{st.t, resp.StatusCode, resp.Header, body}
}

func get(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
}

func TestIDsSurviveTheWire(t *testing.T) {
	st := newStack(t)
	addr, _ := st.serving()
	for path, id := range map[string]string{
		"a/b": "", "a%2Fb": "a/b", "a%2fb": "a/b", "a%252Fb": "a%2Fb", "a+b": "a+b", "a%20b": "a b", "a#b": "a#b", "..": "..", "%2e%2e": "..",
		"a%2Fb{": "a/b{", `a%2Fb"`: `a/b"`, "ü": "ü", "%C3%BC": "ü", "a:b": "a:b", "100%25": "100%", "a%3Fb": "a?b", "a;b=c": "a;b=c", "a%3Bb": "a;b",
	} {
		a := st.raw(addr, get("/v1/users/"+path+"/preferences"))
		if id == "" {
			a.refused(404, sendgate.CodeNotFound, "")
		} else if got := a.ok()["user_id"]; got != id {
			t.Errorf("%s: user %v, want %s", path, got, id)
		}
	}
	for _, path := range []string{"%ff", "\xff", "%00"} {
		st.raw(addr, get("/v1/users/"+path+"/preferences")).refused(400, sendgate.CodeInvalidUserID, "user_id")
	}
	// net/http itself refuses what is no URL, before anybody is asked.
	for _, path := range []string{"%zz", "%", "a b", "\x01"} {
		if a := st.raw(addr, get("/v1/users/"+path+"/preferences")); a.status != 400 {
			t.Errorf("%q: %d", path, a.status)
		}
	}
	if a := st.raw(addr, get("http://other"+prefsURL)); a.ok()["user_id"] != user {
		t.Errorf("%s", a.body)
	}
}

// What a caller says of its own address is not evidence, however near it is.
func TestFromIsWhoIsConnected(t *testing.T) {
	st := newStack(t)
	addr, _ := st.serving()
	st.raw(addr, fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Forwarded-For: 203.0.113.9\r\nX-Real-Ip: 203.0.113.9\r\n"+
		"Forwarded: for=203.0.113.9\r\nContent-Length: %d\r\n\r\n%s", prefsURL, len(optOut), optOut)).ok()
	if from := st.changes(user)[0].(map[string]any)["from"]; from != "127.0.0.1" {
		t.Errorf("from %v", from)
	}
}

func TestABodyWithoutALengthIsBounded(t *testing.T) {
	st := newStack(t)
	addr, _ := st.serving()
	head := "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	a := st.raw(addr, head+fmt.Sprintf("%x\r\n%s\r\n", maxBodyBytes+1, strings.Repeat(" ", maxBodyBytes+1)))
	a.refused(413, sendgate.CodeBodyTooLarge, "")
	body := checkOf("u", "promotions", "push")
	st.raw(addr, head+fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)).ok()
	long := "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"
	st.raw(addr, long).refused(413, sendgate.CodeBodyTooLarge, "")
	if a := st.raw(addr, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 64<<10)+"\r\n\r\n"); a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers without bound: %d", a.status)
	}
}

// holding is a route that does not answer before it is told to, or its
// request's context ends.
func (st *stack) holding() (entered <-chan struct{}, release func()) {
	in, out := make(chan struct{}), make(chan struct{})
	st.wound("/holds", func(c echo.Context) error {
		close(in)
		select {
		case <-out:
			return c.String(200, "whole")
		case <-c.Request().Context().Done():
			return c.Request().Context().Err()
		}
	})
	return in, func() { close(out) }
}

func TestRequestsInFlightFinish(t *testing.T) {
	st := newStack(t)
	entered, release := st.holding()
	addr, stop := st.serving()
	got := make(chan *answer, 1)
	go func() { got <- st.raw(addr, get("/holds")) }()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for { // until nothing is accepted any more
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	select {
	case err := <-stopped:
		t.Fatalf("ended with a request in flight: %v", err)
	default:
	}
	release()
	if a := <-got; a.status != 200 || string(a.body) != "whole" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestReadinessEndsFirst has a server that is to end go on answering, and say
// that it is not ready.
func TestReadinessEndsFirst(t *testing.T) {
	st := newStack(t)
	lingers, goOn := make(chan struct{}), make(chan struct{})
	st.server.linger = func() { close(lingers); <-goOn }
	addr, stop := st.serving()
	stopped := make(chan error)
	go func() { stopped <- stop() }()
	<-lingers
	resp, err := http.Get("http://" + addr + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), `"shutdown"`) {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
	close(goOn)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestTheDrainIsBounded(t *testing.T) {
	st := newStack(t)
	st.server.drain = time.Millisecond
	entered, _ := st.holding()
	addr, stop := st.serving()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		resp, err := http.Get("http://" + addr + "/holds")
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-entered
	if err := stop(); err != nil {
		t.Error(err)
	}
	<-gone
	http.DefaultClient.CloseIdleConnections()
}

func TestServeSaysWhatKeepsItFromServing(t *testing.T) {
	st := newStack(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := st.server.Serve(t.Context(), l); err == nil {
		t.Error("a closed listener was served")
	}
}

// A caller who goes away ends what is done for it, and is nobody's fault.
func TestACallerWhoGoesAway(t *testing.T) {
	st := newStack(t)
	answered := make(chan int, 1)
	st.observe = func(_, _ string, status int, _ time.Duration) { answered <- status }
	st.store.down.Store(true)
	addr, _ := st.serving()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, get(prefsURL)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	select {
	case status := <-answered:
		if status != statusGone {
			t.Errorf("status %d", status)
		}
	case <-time.After(3 * time.Second):
		t.Error("the request outlives its caller")
	}
}
