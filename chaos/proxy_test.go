package chaos_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands between a program and an engine, and does to their connections
// what networks do.
type proxy struct {
	listener net.Listener
	carrying sync.WaitGroup
	life     context.Context
	end      context.CancelFunc

	mu      sync.Mutex
	target  string
	conns   map[net.Conn]bool
	refuses bool
	delay   time.Duration
	stalled chan struct{} // closed when it ends; nil while all is well
	trap    *trap
}

// trap holds up, for as long as a stall would, the first thing that a program
// sends which matches.
type trap struct {
	matches func(sent []byte) bool
	passes  bool          // what matches gets through, and its answer is held up
	sprung  chan struct{} // closed then
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: target, listener: l, conns: map[net.Conn]bool{}}
	p.life, p.end = context.WithCancel(context.Background())
	p.carrying.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.end()
		p.reset()
		p.carrying.Wait()
	})
	return p
}

// addr is the proxy's own host:port; none of no proxy.
func (p *proxy) addr() string {
	if p == nil {
		return ""
	}
	return p.listener.Addr().String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.carrying.Go(func() { p.join(client) })
	}
}

// join connects a client to the target, unless connections are refused.
func (p *proxy) join(client net.Conn) {
	p.mu.Lock()
	refuses, target := p.refuses, p.target
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.life, 5*time.Second)
	defer cancel()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil || refuses {
		abort(client)
		if err == nil {
			abort(server)
		}
		return
	}
	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	ended := p.life.Err() != nil // reset has been there already
	p.mu.Unlock()
	if ended {
		abort(client)
		abort(server)
	}
	both := &sync.Mutex{} // held by who is held up, so that neither way gets through
	p.carrying.Go(func() { p.carry(server, client, true, both) })
	p.carrying.Go(func() { p.carry(client, server, false, both) })
}

func (p *proxy) carry(to, from net.Conn, up bool, both *sync.Mutex) {
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
		both.Lock()
		ok := p.pass(to, buffer[:n], up)
		both.Unlock()
		if !ok {
			return
		}
	}
}

// pass sends on what was received, when the network lets it.
func (p *proxy) pass(to net.Conn, data []byte, up bool) bool {
	p.mu.Lock()
	delay, until, passes := p.delay, p.stalled, false
	if t := p.trap; up && t != nil && t.matches(data) {
		p.trap, p.stalled = nil, make(chan struct{})
		until, passes = p.stalled, t.passes
		close(t.sprung)
	}
	p.mu.Unlock()
	if passes {
		if _, err := to.Write(data); err != nil {
			return false
		}
		data = nil
	}
	if until != nil {
		select {
		case <-until:
		case <-p.life.Done():
		}
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-p.life.Done():
		}
	}
	_, err := to.Write(data)
	return err == nil
}

// blackHole lets connections be, and nothing through them.
func (p *proxy) blackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

// holdAt holds everything up from when something is sent that matches; with
// passes, that itself gets through. The channel is closed then.
func (p *proxy) holdAt(passes bool, matches func(sent []byte) bool) (sprung <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = &trap{matches: matches, passes: passes, sprung: make(chan struct{})}
	return p.trap.sprung
}

// slow delays whatever is sent either way, each piece by itself.
func (p *proxy) slow(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = by
}

// refuse breaks every connection and takes no new one.
func (p *proxy) refuse() {
	p.mu.Lock()
	p.refuses = true
	p.mu.Unlock()
	p.reset()
}

// lead sends new connections elsewhere, and breaks the others.
func (p *proxy) lead(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.reset()
}

// heal lets everything through again, what was held up included.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses, p.delay, p.trap = false, 0, nil
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

// reset breaks every connection.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		abort(conn)
	}
}

// abort closes a connection without a word to its other end.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
