package feed_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
)

// proxy stands between a follower and its Redis, and does to their connections
// what networks do.
type proxy struct {
	t        *testing.T
	target   string
	listener net.Listener
	carrying sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool
	refuses bool
	stalled chan struct{} // closed when it ends; nil while all is well
	split   []byte        // where to stop in what the server sends, once
	ends    chan struct{} // closed when something is sent to the server again
	opened  int
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: target, listener: l, conns: map[net.Conn]bool{}}
	p.carrying.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.heal()
		p.reset()
		p.carrying.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuses := p.refuses
		p.mu.Unlock()
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
		if err != nil || refuses {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.opened++
		p.mu.Unlock()
		p.carrying.Go(func() { p.carry(server, client, false) })
		p.carrying.Go(func() { p.carry(client, server, true) })
	}
}

func (p *proxy) carry(to, from net.Conn, down bool) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
		p.mu.Lock()
		delete(p.conns, to)
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		stop, until := p.hold(buffer[:n], down)
		if _, err := to.Write(buffer[:stop]); err != nil {
			return
		}
		if until != nil {
			<-until
		}
		if _, err := to.Write(buffer[stop:n]); err != nil {
			return
		}
	}
}

// hold says after how much of some data, and until when, the network holds it
// up.
func (p *proxy) hold(data []byte, down bool) (stop int, until <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := bytes.Index(data, p.split); down && p.split != nil && at >= 0 {
		p.split, p.ends = nil, make(chan struct{})
		return at, p.ends
	}
	if !down && p.ends != nil && bytes.Contains(data, []byte("ping")) {
		close(p.ends)
		p.ends = nil
	}
	return 0, p.stalled
}

// blackHole lets connections be, and nothing through them.
func (p *proxy) blackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = make(chan struct{})
}

// refuse breaks every connection and takes no new one.
func (p *proxy) refuse() {
	p.mu.Lock()
	p.refuses = true
	p.mu.Unlock()
	p.reset()
}

// heal lets everything through again, what was held up included.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = false
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
	if p.ends != nil {
		close(p.ends)
		p.ends = nil
	}
}

// reset breaks every connection.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// splitAt holds the next thing up that the server sends, from where a text
// stands in it, until the client asks for a sign of life.
func (p *proxy) splitAt(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.split = []byte(text)
}
