package rebuild_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

// The beginnings of the lines that a rebuild logs.
const (
	marked    = `level=INFO msg="a stage of the rebuild is done" stage=mark took=0s`
	read      = `level=INFO msg="a stage of the rebuild is done" stage="read and build" took=2s records=2`
	published = `level=INFO msg="a stage of the rebuild is done" stage=publish took=0s`
	built     = `level=INFO msg="a filter was built" generation=GENERATION took=2s records=2 opt_outs=2 opt_ins=0 bytes=`
	notBuilt  = `level=ERROR msg="no new filter was built; the one in use stays" error=broken`
	notTold   = `level=ERROR msg="the filter was built, and not all that follows was done" error="the filter is published, and the gates could not be told`
)

// TestLines holds the log to one line for each stage and one for the whole.
func TestLines(t *testing.T) {
	for what, c := range map[string]struct {
		breakIt func(s *streams, a *failing)
		want    []string
	}{
		"all is well":                {func(*streams, *failing) {}, []string{marked, read, published, built}},
		"the gates are not told":     {func(s *streams, _ *failing) { s.failAnnounced.Store(true) }, []string{marked, read, published, notTold, built}},
		"the streams are not marked": {func(s *streams, _ *failing) { s.failMark.Store(true) }, []string{notBuilt}},
		"it is not published":        {func(_ *streams, a *failing) { a.publish = errBroken }, []string{marked, read, notBuilt}},
	} {
		var log bytes.Buffer
		now := noon()
		clock := func() time.Time { return now }
		a := &failing{Archive: newPlace(t)}
		o, streams, _ := options(a)
		c.breakIt(streams, a)
		o.Segments, o.Now, o.Progress = 1, clock, rebuild.NewLines(slog.New(slog.NewTextHandler(&log, nil)), clock)
		o.Store = scanner(func(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
			now = now.Add(2 * time.Second)
			return holding("a", "b")(ctx, segment, segments, each)
		})
		b := rebuild.New(o)
		for _, generation := range []string{"1796040000", "1796040002"} { // the second counts afresh
			log.Reset()
			_, _ = b.Once(t.Context())
			got := strings.Split(strings.TrimSpace(log.String()), "\n")
			if len(got) != len(c.want) {
				t.Fatalf("%s: %d lines\n%s", what, len(got), log.String())
			}
			for i, want := range c.want {
				want = strings.ReplaceAll(want, "GENERATION", generation)
				if _, line, _ := strings.Cut(got[i], " "); !strings.HasPrefix(line, want) { // after the time
					t.Errorf("%s: line %d is\n%s\nwant\n%s", what, i, line, want)
				}
			}
		}
	}
}
