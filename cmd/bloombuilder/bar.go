package main

import (
	"fmt"
	"io"
	"time"

	bytesize "github.com/dustin/go-humanize" //nolint:misspell // is its name
	"github.com/schollz/progressbar/v3"

	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/rebuild"
)

// bar shows a rebuild on a terminal, a line for each stage. How many records
// there are is not known beforehand, so that it counts.
type bar struct {
	out   io.Writer
	shown *progressbar.ProgressBar // nil between rebuilds
}

func newBar(out io.Writer) *bar { return &bar{out: out} }

// Stage ends the line of the stage before and begins the next.
func (b *bar) Stage(s rebuild.Stage) {
	b.end()
	options := []progressbar.Option{
		progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(s.String()), progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionSpinnerType(14),
		// At an interval the bar would draw itself, in a goroutine of its own.
		progressbar.OptionSetSpinnerChangeInterval(0),
	}
	if s == rebuild.StageBuild {
		options = append(options, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("records"))
	}
	b.shown = progressbar.NewOptions64(-1, options...)
	_ = b.shown.RenderBlank()
}

// end shows the stage as it is now, whatever was shown last.
func (b *bar) end() {
	if b.shown != nil {
		_ = b.shown.Finish()
		fmt.Fprintln(b.out)
		b.shown = nil
	}
}

// Read counts records.
func (b *bar) Read(records int) { _ = b.shown.Add(records) }

// Done says what was built, or why nothing was.
func (b *bar) Done(built *bloom.Built, err error) {
	b.end()
	if built == nil {
		fmt.Fprintf(b.out, "no new filter was built: %v\n", err)
		return
	}
	if err != nil {
		fmt.Fprintf(b.out, "not all that follows was done: %v\n", err)
	}
	h := built.Header()
	fmt.Fprintf(b.out, "generation %d: %s opt-outs, %s opt-ins, %s, false-positive rate %.2g\n", h.Generation,
		bytesize.Comma(h.Keys.Rejecting()), bytesize.Comma(h.Keys.OptIns), bytesize.IBytes(uint64(h.OptOuts.Words+h.OptIns.Words)*8), h.FalsePositiveRate())
}
