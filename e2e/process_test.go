package e2e_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programs builds the programs and returns their folder.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", raceFlag, "-o", dir+string(filepath.Separator), "../cmd/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the programs do not build: %v\n%s", err, out)
	}
	return dir
}

// process is a program that runs, and cannot outlive this one.
type process struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	first  string // line of its standard output, if it was waited for
	stderr lockedBuffer
	ended  chan struct{} // closed once it is gone
	err    error         // how it ended; to be read afterwards
}

// options of start.
type options struct {
	greets      bool     // wait for the first line of its output
	environment []string // NAME=value, beside this process' own
}

// start starts a program. The kernel ends it when the thread that started it
// ends, so that thread is kept, asleep, for as long as the program lives.
func start(t *testing.T, o options, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: filepath.Base(path), cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true")
	p.cmd.Env = append(p.cmd.Env, o.environment...)
	p.cmd.Stderr = &p.stderr
	endWithParent(p.cmd)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	lines := make(chan string, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		read := bufio.NewReader(out)
		line, _ := read.ReadString('\n')
		lines <- line
		_, _ = io.Copy(io.Discard, read)
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		t.Fatalf("%s did not start: %v", p.name, err)
	}
	t.Cleanup(p.kill)
	if o.greets {
		select {
		case p.first = <-lines:
		case <-time.After(patience):
		}
		if p.first == "" {
			t.Fatalf("%s does not greet; it said:\n%s", p.name, p.stderr.String())
		}
	}
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended already
	<-p.ended
	if said := p.stderr.String(); strings.Contains(said, "panic:") || strings.Contains(said, "DATA RACE") {
		p.t.Errorf("%s said:\n%s", p.name, said)
	} else if p.t.Failed() {
		p.t.Logf("%s said:\n%s", p.name, lastLines(said, 20))
	}
}

// stop asks a program to end, and wants it to do so in good order.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
	p.wait()
}

// endsWithin is for a builder that scans slowly on a busy machine.
const endsWithin = 5 * time.Minute

// wait waits until a program has ended, and wants it to have done so in good
// order.
func (p *process) wait() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(endsWithin):
		p.t.Fatalf("%s does not end within %s; it said:\n%s", p.name, endsWithin, lastLines(p.stderr.String(), 40))
	}
	if p.err != nil {
		p.t.Fatalf("%s ended with %v, and said:\n%s", p.name, p.err, lastLines(p.stderr.String(), 40))
	}
}

// lastLines are the last n lines of a log, without requests that went well.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"status":200`) })
	if left := len(lines) - n; left > 0 {
		lines = append([]string{fmt.Sprintf("… %d lines …", left)}, lines[left:]...)
	}
	return strings.Join(lines, "\n")
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
