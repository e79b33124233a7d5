// Command gate is Sendgate's gate: it answers whether a notification may go
// out, and asks a running gate on behalf of a person.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// version is set when a release is built; otherwise the build knows it.
var version string

type commands struct {
	Dev     devCmd     `cmd:"" help:"Run a gate for trying out: embedded store and Redis, sample catalog."`
	Serve   serveCmd   `cmd:"" help:"Run a gate against a real Redis and store."`
	Check   checkCmd   `cmd:"" help:"Ask a running gate whether a notification may go out. An allow takes its slots."`
	Explain explainCmd `cmd:"" help:"Ask a running gate what each step of a check finds. Takes no slots."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// streams are where a command writes.
type streams struct{ out, err io.Writer }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, s streams) error {
	var c commands
	exited := false
	parser, err := kong.New(&c, kong.Name("gate"), kong.Description("Sendgate decides whether a notification may go out."),
		kong.UsageOnError(), kong.Writers(s.out, s.err), kong.Exit(func(int) { exited = true }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s))
	if err != nil {
		return err
	}
	for _, arg := range args {
		if !utf8.ValidString(arg) { // the parser would repair it, and ask about somebody else
			return fmt.Errorf("argument %q is not valid UTF-8", arg)
		}
	}
	parsed, err := parser.Parse(args)
	if exited { // help was printed
		return nil
	}
	if err != nil {
		return err
	}
	return parsed.Run()
}

type versionCmd struct{}

func (versionCmd) Run(s streams) error {
	_, err := fmt.Fprintln(s.out, "sendgate", buildVersion())
	return err
}

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// newLog writes JSON lines.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
