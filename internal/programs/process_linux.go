package programs

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel kill the child when its parent is gone, however
// that ended.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
