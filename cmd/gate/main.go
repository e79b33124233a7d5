// Command gate is Sendgate's gate: it answers whether a notification may go
// out, and asks a running gate on behalf of a person.
package main

import (
	"context"

	"github.com/sendgate/sendgate/internal/cli"
)

type commands struct {
	Dev     devCmd         `cmd:"" help:"Run a gate for trying out: embedded store and Redis, sample catalog."`
	Serve   serveCmd       `cmd:"" help:"Run a gate against a real Redis and store."`
	Check   checkCmd       `cmd:"" help:"Ask a running gate whether a notification may go out. An allow takes its slots."`
	Explain explainCmd     `cmd:"" help:"Ask a running gate what each step of a check finds. Takes no slots."`
	Caps    capsCmd        `cmd:"" help:"Show what a user, or another subject of caps, has been charged."`
	Replay  replayCmd      `cmd:"" help:"Count again what decision logs say was charged, and hold every verdict against it."`
	Rebuild rebuildCapsCmd `cmd:"" name:"rebuild-caps" help:"Count again in the caps' Redis what decision logs say still counts, after it was lost."`
	Version cli.VersionCmd `cmd:"" help:"Print the version."`
}

func main() { cli.Main("gate", run) }

// run is the whole program.
func run(ctx context.Context, args []string, s cli.Streams) error {
	return cli.Run(ctx, "gate", "Sendgate decides whether a notification may go out.", &commands{}, args, s)
}
