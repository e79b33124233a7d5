package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// machine names what figures were taken on, and how busy it was before.
func machine(ctx context.Context) string {
	line := func(path, prefix string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		for l := range strings.Lines(string(data)) {
			if rest, ok := strings.CutPrefix(l, prefix); ok {
				return strings.TrimSpace(strings.TrimLeft(rest, "\t :"))
			}
		}
		return ""
	}
	or := func(text, otherwise string) string {
		if text == "" {
			return otherwise
		}
		return text
	}
	memory := "memory unknown"
	var kilobytes int64
	if _, err := fmt.Sscanf(line("/proc/meminfo", "MemTotal"), "%d kB", &kilobytes); err == nil {
		memory = fmt.Sprintf("%.0f GiB", float64(kilobytes)/(1<<20))
	}
	redis := "Redis of unknown version"
	if out, err := exec.CommandContext(ctx, "redis-server", "--version").Output(); err == nil {
		if _, rest, ok := strings.Cut(string(out), "v="); ok {
			redis = "Redis " + strings.Fields(rest)[0]
		}
	}
	load := strings.Fields(or(line("/proc/loadavg", ""), "unknown"))
	return fmt.Sprintf("%s, %d cores, %s, %s/%s, %s, %s; load %s before the run",
		or(line("/proc/cpuinfo", "model name"), "a processor of unknown model"), runtime.NumCPU(), memory,
		runtime.GOOS, runtime.GOARCH, strings.Replace(runtime.Version(), "go", "Go ", 1), redis, strings.Join(load[:min(3, len(load))], " "))
}

// ownProcessor is how much processor time this process has used.
func ownProcessor() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
