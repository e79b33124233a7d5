package main

import (
	"fmt"
	"math/rand/v2"
	"text/tabwriter"
	"time"

	bytesize "github.com/dustin/go-humanize" //nolint:misspell // is its name

	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/internal/cli"
)

type inspectCmd struct {
	File   string `arg:"" type:"existingfile" help:"A snapshot file."`
	Probes int    `default:"1000000" help:"How many users who do not exist the false-positive rate is measured with."`
}

// Run checks the whole file first: what is printed can be relied on.
func (c inspectCmd) Run(s cli.Streams) error {
	if c.Probes < 1 {
		return fmt.Errorf("--probes must be 1 or more, not %d", c.Probes)
	}
	snapshot, err := bloom.Open(c.File)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	h := snapshot.Header()
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("namespace", "%s", h.Namespace)
	row("generation", "%d", h.Generation)
	row("built", "%s", h.BuiltAt.Format(time.RFC3339))
	row("position", "%d partitions, token %s", len(h.Position.Offsets), h.Position.Token)
	row("size", "%s", bytesize.IBytes(uint64(snapshot.Size())))
	row("keys", "%s holds, %s hard holds, %s opt-outs, %s opt-ins", bytesize.Comma(h.Keys.Holds), bytesize.Comma(h.Keys.HardHolds),
		bytesize.Comma(h.Keys.OptOuts), bytesize.Comma(h.Keys.OptIns))
	for _, f := range []struct {
		name string
		of   bloom.FilterHeader
	}{{"opt-outs", h.OptOuts}, {"opt-ins", h.OptIns}} {
		row(f.name, "%s different keys, %s, %d shards, %d hashes, %.2g false positives for one key", bytesize.Comma(f.of.Keys),
			bytesize.IBytes(uint64(f.of.Words)*8), f.of.Shards, f.of.Hashes, f.of.Rate)
	}
	row("opt-ins of", "%v", h.Covered)
	row("checksums", "right, and all %d canaries found", h.Canaries)
	row("false positives", "%.3g of checks by the bits that are set, %.3g of %s probes", h.FalsePositiveRate(),
		snapshot.Measure(c.Probes, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))), bytesize.Comma(int64(c.Probes)))
	return w.Flush()
}
