// Command bloombuilder builds the filter of all opt-outs from the store, on a
// schedule or once, and publishes it for the gates.
package main

import (
	"context"

	"github.com/sendgate/sendgate/internal/cli"
)

type commands struct {
	Build   buildCmd       `cmd:"" default:"withargs" help:"Build filters on the configured schedule, or one (the default command)."`
	Inspect inspectCmd     `cmd:"" help:"Check a snapshot file, and print what it is and its measured false-positive rate."`
	Version cli.VersionCmd `cmd:"" help:"Print the version."`
}

func main() { cli.Main("bloombuilder", run) }

// run is the whole program.
func run(ctx context.Context, args []string, s cli.Streams) error {
	return cli.Run(ctx, "bloombuilder", "Sendgate's builder keeps the filter of all opt-outs up to date.", &commands{}, args, s)
}
