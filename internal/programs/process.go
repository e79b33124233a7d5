package programs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sendgate/sendgate/internal/redistest"
)

const (
	// greetsWithin and endsWithin are for machines that are busy with other
	// tests. Nothing waits them out that is going to succeed.
	greetsWithin = 2 * time.Minute
	endsWithin   = 5 * time.Minute
)

// Build builds the programs, with flags of `go build`, and returns their
// folder.
func Build(t testing.TB, flags ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	args := append([]string{"build", raceFlag, "-o", folder + string(filepath.Separator)}, flags...)
	build := exec.CommandContext(t.Context(), "go", append(args, "github.com/sendgate/sendgate/cmd/...")...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the programs do not build: %v\n%s", err, out)
	}
	return folder
}

// Process is a program that runs, and cannot outlive this one.
type Process struct {
	First string // line of its standard output, if it was waited for

	t      testing.TB
	name   string
	cmd    *exec.Cmd
	stderr redistest.Output
	ended  chan struct{} // closed once it is gone
	err    error         // how it ended; to be read afterwards
}

// Options of Start.
type Options struct {
	Greets      bool     // wait for the first line of its output
	Environment []string // NAME=value, beside this process' own
}

// Start starts a program. The kernel ends it when the thread that started it
// ends, so that thread is kept, asleep, for as long as the program lives.
func Start(t testing.TB, o Options, path string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, name: filepath.Base(path), cmd: exec.CommandContext(context.Background(), path, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true")
	p.cmd.Env = append(p.cmd.Env, o.Environment...)
	p.cmd.Stderr = &p.stderr
	endWithParent(p.cmd)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started, lines := make(chan error), make(chan string, 1)
	go p.run(out, started, lines)
	if err := <-started; err != nil {
		t.Fatalf("%s did not start: %v", p.name, err)
	}
	t.Cleanup(p.Kill)
	if o.Greets {
		select {
		case p.First = <-lines:
		case <-time.After(greetsWithin):
		}
		if p.First == "" {
			t.Fatalf("%s does not greet; it said:\n%s", p.name, p.stderr.String())
		}
	}
	return p
}

func (p *Process) run(out io.Reader, started chan<- error, lines chan<- string) {
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
}

// Ended is closed once the program is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Said is what the program has written to its standard error so far.
func (p *Process) Said() string { return p.stderr.String() }

// Kill ends a program as `kill -9` does, and returns once it is gone. It is an
// error of the test if it panicked or had a data race before. Killing a killed
// program does nothing.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended already
	<-p.ended
	if said := p.stderr.String(); strings.Contains(said, "panic:") || strings.Contains(said, "DATA RACE") {
		p.t.Errorf("%s said:\n%s", p.name, said)
	} else if p.t.Failed() {
		p.t.Logf("%s said:\n%s", p.name, lastLines(said, 20))
	}
}

// Signal sends a program a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// Stop asks a program to end, and wants it to do so in good order.
func (p *Process) Stop() {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	p.Wait()
}

// Wait waits until a program has ended, and wants it to have done so in good
// order.
func (p *Process) Wait() {
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
