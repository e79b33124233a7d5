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

// bar shows a rebuild on a terminal. How many records there are is not known
// beforehand, so that it counts.
type bar struct {
	out   io.Writer
	shown *progressbar.ProgressBar
}

func newBar(out io.Writer) *bar { return &bar{out: out} }

// Stage begins the bar, or says what it shows.
func (b *bar) Stage(s rebuild.Stage) {
	if s == rebuild.StageMark {
		b.shown = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(b.out), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("records"), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSpinnerType(14))
	}
	b.shown.Describe(s.String())
}

// Read counts records.
func (b *bar) Read(records int) { _ = b.shown.Add(records) }

// Done says what was built, or why nothing was.
func (b *bar) Done(built *bloom.Built, err error) {
	if b.shown != nil {
		_ = b.shown.Exit()
	}
	if built == nil {
		fmt.Fprintf(b.out, "\nno new filter was built: %v\n", err)
		return
	}
	h := built.Header()
	fmt.Fprintf(b.out, "\ngeneration %d: %s opt-outs, %s opt-ins, %s, false-positive rate %.2g\n", h.Generation,
		bytesize.Comma(h.Keys.Rejecting()), bytesize.Comma(h.Keys.OptIns), bytesize.IBytes(uint64(h.OptOuts.Words+h.OptIns.Words)*8), h.FalsePositiveRate())
}
