package redisconn_test

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fake is a Redis as a test needs it: it counts what comes, and answers what
// it is told to.
type fake struct {
	listener net.Listener
	answer   func(command string) (reply string, hangUp bool)

	mu       sync.Mutex
	conns    []net.Conn
	commands map[string]int
	serving  sync.WaitGroup
}

// startFake starts a server. An empty reply is none at all.
func startFake(t *testing.T, answer func(command string) (reply string, hangUp bool)) *fake {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{listener: l, answer: answer, commands: map[string]int{}}
	f.serving.Go(f.accept)
	t.Cleanup(f.stop)
	return f
}

func silent(string) (string, bool) { return "", false }

// knowsGet answers like an old Redis that knows one command.
func knowsGet(reply string, hangUp bool) func(string) (string, bool) {
	return func(command string) (string, bool) {
		if command == "get" {
			return reply, hangUp
		}
		return "-ERR unknown command\r\n", false
	}
}

func (f *fake) addr() string { return f.listener.Addr().String() }

func (f *fake) stop() {
	_ = f.listener.Close()
	f.mu.Lock()
	for _, conn := range f.conns {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.serving.Wait()
}

func (f *fake) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns = append(f.conns, conn)
		f.mu.Unlock()
		f.serving.Go(func() { f.serve(conn) })
	}
}

func (f *fake) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.commands[command]++
		f.mu.Unlock()
		reply, hangUp := f.answer(command)
		if _, err := io.WriteString(conn, reply); err != nil || hangUp {
			return
		}
	}
}

// count is how often a command has come.
func (f *fake) count(command string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.commands[command]
}

// readCommand reads a command and returns its first word.
func readCommand(r *bufio.Reader) (string, error) {
	words, err := readCount(r)
	if err != nil {
		return "", err
	}
	var first string
	for i := range words {
		size, err := readCount(r)
		if err != nil {
			return "", err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return "", err
		}
		if i == 0 {
			first = strings.ToLower(string(word[:size]))
		}
	}
	return first, nil
}

func readCount(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
}
