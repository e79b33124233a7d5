package redistest

import (
	"os/exec"
	"runtime"
)

// process is a child that cannot outlive this one.
type process struct {
	pid   int
	ended chan struct{} // closed once it is gone
	cmd   *exec.Cmd
	out   Output
}

// startProcess starts a child. The kernel ends it when the thread that started
// it ends, so that thread is kept, asleep, for as long as the child lives.
func startProcess(path string, args ...string) (*process, error) {
	p := &process{ended: make(chan struct{}), cmd: exec.Command(path, args...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	endWithParent(p.cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it is always killed; how it ended tells nothing
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.pid = p.cmd.Process.Pid
	return p, nil
}

// kill ends the child and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended already
	<-p.ended
}

// output is what the child has printed so far.
func (p *process) output() string { return p.out.String() }
