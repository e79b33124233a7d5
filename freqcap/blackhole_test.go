package freqcap_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate/freqcap"
	"github.com/sendgate/sendgate/guard"
	"github.com/sendgate/sendgate/redisconn"
)

// blackHole accepts connections and never answers.
func blackHole(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	var held []net.Conn
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, conn)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
		for _, conn := range held {
			_ = conn.Close()
		}
	})
	return l.Addr().String()
}

// holdsItsLimit makes ten calls to a Redis that does not answer. Each must end
// within one time limit, not a multiple of it, and the tenth opens the breaker.
func holdsItsLimit(t *testing.T, o redisconn.Options) {
	t.Helper()
	const limit = 250 * time.Millisecond
	client, err := redisconn.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	g := guard.New(guard.Options{Name: "caps", Limit: limit, InFlight: 8, Answered: redisconn.Answered})
	l := freqcap.New(client, newSpace(t), g)
	for i := range 10 {
		if g.Open() {
			t.Fatalf("the breaker is open after %d calls", i)
		}
		// A list of three calls: the first one's fate is that of all.
		asks := asksOf("u", 1, capOf(time.Minute, 1))
		if i%2 == 1 {
			asks = append(asksOf("u", 150, capOf(time.Minute, 1)), asksOf("v", 150, capOf(time.Minute, 1))...)
		}
		began := time.Now()
		for _, a := range l.Judge(context.Background(), asks, 0) {
			if a.Err == nil || a.Admitted {
				t.Fatalf("call %d: %+v", i, a)
			}
		}
		if took := time.Since(began); took > 2*limit {
			t.Errorf("call %d took %s, its limit being %s", i, took, limit)
		}
	}
	if !g.Open() {
		t.Error("the breaker is closed after ten failures in a row")
	}
	began := time.Now()
	if a := l.Judge(context.Background(), asksOf("u", 1, capOf(time.Minute, 1)), 0)[0]; a.Err == nil {
		t.Errorf("behind an open breaker: %+v", a)
	}
	if took := time.Since(began); took > limit {
		t.Errorf("an open breaker took %s", took)
	}
}

func TestARedisThatNeverAnswers(t *testing.T) {
	t.Parallel()
	holdsItsLimit(t, redisconn.Options{Addrs: []string{blackHole(t)}})
}

func TestAClusterThatNeverAnswers(t *testing.T) {
	t.Parallel()
	holdsItsLimit(t, redisconn.Options{Mode: "cluster", Addrs: []string{blackHole(t), blackHole(t), blackHole(t)}})
}
