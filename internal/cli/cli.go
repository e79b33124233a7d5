// Package cli owns what the programs have in common: how arguments are read,
// where output goes, and which version a program is.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// version is set when a release is built; otherwise the build knows it.
var version string

// Streams are where a program writes.
type Streams struct{ Out, Err io.Writer }

// Main runs a program on the process' own arguments until it is interrupted or
// terminated, and ends the process with 1 if it failed.
func Main(name string, run func(ctx context.Context, args []string, s Streams) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], Streams{os.Stdout, os.Stderr})
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Run reads the arguments of a program into commands, a pointer to a struct as
// kong has it, and runs the one that was chosen. Its Run method may take a
// context.Context and a Streams.
func Run(ctx context.Context, name, description string, commands any, args []string, s Streams) error {
	exited := false
	parser, err := kong.New(commands, kong.Name(name), kong.Description(description),
		kong.UsageOnError(), kong.Writers(s.Out, s.Err), kong.Exit(func(int) { exited = true }),
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
	var parseError *kong.ParseError
	if errors.As(err, &parseError) {
		return fmt.Errorf("%w (see %s --help)", err, about(name, parseError.Context.Selected()))
	}
	if err != nil {
		return err
	}
	return parsed.Run()
}

// about is the command that arguments were given for, as far as one was named.
func about(program string, command *kong.Node) string {
	if command == nil {
		return program
	}
	return command.FullPath()
}

// VersionCmd prints the version.
type VersionCmd struct{}

// Run prints the version.
func (VersionCmd) Run(s Streams) error {
	_, err := fmt.Fprintln(s.Out, "sendgate", Version())
	return err
}

// Version is the version of the program.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// NewLog writes JSON lines.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// Environment is the process' environment by name.
func Environment() map[string]string {
	vars := map[string]string{}
	for _, v := range os.Environ() {
		if name, value, ok := strings.Cut(v, "="); ok {
			vars[name] = value
		}
	}
	return vars
}
