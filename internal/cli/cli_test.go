package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sendgate/sendgate/internal/cli"
)

type key struct{}

var errBroken = errors.New("broken")

type commands struct {
	Say     sayCmd         `cmd:"" help:"Say something."`
	Break   breakCmd       `cmd:"" help:"Fail."`
	Version cli.VersionCmd `cmd:"" help:"Print the version."`
}

type sayCmd struct {
	What string `arg:"" help:"What to say."`
	Loud bool   `help:"Say it loudly."`
}

func (c sayCmd) Run(ctx context.Context, s cli.Streams) error {
	fmt.Fprintln(s.Out, c.What, c.Loud, ctx.Value(key{}))
	return nil
}

type breakCmd struct{}

func (breakCmd) Run() error { return errBroken }

func run(t *testing.T, args ...string) (out, complaints string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	ctx := context.WithValue(t.Context(), key{}, "by context")
	err = cli.Run(ctx, "program", "It is a test.", &commands{}, args, cli.Streams{Out: &o, Err: &e})
	return o.String(), e.String(), err
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args []string
		out  string // begins so
		err  string // holds so; empty: none
	}{
		{[]string{"say", "hello", "--loud"}, "hello true by context\n", ""},
		{[]string{"say", "\u00fc\u0000"}, "\u00fc\u0000 false by context\n", ""},
		{[]string{"version"}, "sendgate " + cli.Version() + "\n", ""},
		{[]string{"--help"}, "Usage: program <command>", ""},
		{[]string{"say", "--help"}, "Usage: program say <what>", ""},
		{nil, "", "expected one of"},
		{[]string{"bogus"}, "", "unexpected argument bogus"},
		{[]string{"version", "more"}, "", "unexpected argument more"},
		{[]string{"say"}, "", `expected "<what>"`},
		{[]string{"say", "x", "--bogus"}, "", "unknown flag --bogus"},
		{[]string{"say", "u\xff"}, "", `argument "u\xff" is not valid UTF-8`},
		{[]string{"say", "--loud=\xc3\x28", "x"}, "", "is not valid UTF-8"},
		{[]string{"break"}, "", "broken"},
	} {
		out, _, err := run(t, c.args...)
		if !strings.HasPrefix(out, c.out) || c.out == "" && out != "" {
			t.Errorf("%q: says %q", c.args, out)
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
	if _, _, err := run(t, "break"); !errors.Is(err, errBroken) {
		t.Errorf("%v is not the command's error", err)
	}
}

func TestVersion(t *testing.T) {
	if v := cli.Version(); v == "" || strings.ContainsAny(v, " \n") {
		t.Errorf("%q", v)
	}
}

func TestNewLog(t *testing.T) {
	var out bytes.Buffer
	log := cli.NewLog(&out, slog.LevelWarn)
	log.Info("not heard")
	log.Warn("heard", "n", 1)
	if got := out.String(); !strings.HasSuffix(got, `"level":"WARN","msg":"heard","n":1}`+"\n") || strings.Contains(got, "not heard") {
		t.Errorf("%q", got)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SENDGATE_TEST_CLI", "a=b")
	if got := cli.Environment()["SENDGATE_TEST_CLI"]; got != "a=b" {
		t.Errorf("%q", got)
	}
}
