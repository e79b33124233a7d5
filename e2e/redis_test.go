package e2e_test

import (
	"testing"

	"github.com/sendgate/sendgate/internal/redistest"
)

func (f *fleet) commands() redistest.Commands {
	f.t.Helper()
	return redistest.CommandsOf(f.t, f.client)
}

// background is what gates send while nobody asks them anything: observed for
// as long as it takes every one of them to look at every change stream twice.
func (f *fleet) background(t *testing.T) redistest.Commands {
	t.Helper()
	before := f.commands()
	until(t, "the gates look at the change streams", func() bool {
		return f.commands().Since(before)["xrange"] >= 2*len(f.gates)*partitions
	})
	return f.commands().Since(before)
}
