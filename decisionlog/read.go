package decisionlog

import (
	"context"
	"errors"
	"math"
	"time"
)

// Slack is how far a log may be out of order. An entry is written when its check
// is answered, which is later than it was judged.
const Slack = 30 * time.Second

// ReadOptions say how logs are read.
type ReadOptions struct {
	SkipBad bool // lines that are no entries are counted; otherwise the first one is an error
}

// Stats are what was read.
type Stats struct {
	Entries int64 // decisions and outcomes
	Lost    int64 // entries that the gates say are missing
	Torn    Faults
	Bad     Faults // lines that were skipped
}

// Faults are lines that could not be read, the first of them by name.
type Faults struct {
	Count int
	Named []error
}

const maxNamed = 20

func (f *Faults) add(err error) {
	if f.Count++; f.Count <= maxNamed {
		f.Named = append(f.Named, err)
	}
}

// Read reads logs, those of several gates and what was rotated away, in any
// order, as one. each is called for every decision and outcome. Nothing that it
// is called with later is of a time earlier than before, in milliseconds, if no
// log is out of order by more than Slack. The first error of each ends it.
func Read(ctx context.Context, paths []string, o ReadOptions, each func(e *Entry, before int64) error) (stats Stats, err error) {
	sources := make([]*source, 0, len(paths))
	defer func() {
		for _, s := range sources {
			s.close()
		}
	}()
	for _, path := range paths {
		l, err := openLines(path, o, &stats)
		if err != nil {
			return stats, err
		}
		sources = append(sources, &source{lines: l, latest: math.MinInt64})
	}
	if len(paths) == 0 {
		return stats, errors.New("no log was named")
	}
	for {
		s, before := rearmost(sources)
		if s == nil {
			return stats, nil
		}
		if err := ctx.Err(); err != nil {
			return stats, err
		}
		e, err := s.read()
		if err != nil {
			return stats, err
		}
		if e == nil {
			s.ended = true
			continue
		}
		if e.Kind != KindUncapped { // which is by a gate's own clock
			s.latest = max(s.latest, e.At)
		}
		if err := each(e, before); err != nil {
			return stats, err
		}
	}
}

// source is one log among several.
type source struct {
	*lines
	latest int64 // that was read of it
	ended  bool
}

// rearmost is the log that has been read least far, and before what time nothing
// comes any more.
func rearmost(sources []*source) (rear *source, before int64) {
	for _, s := range sources {
		if !s.ended && (rear == nil || s.latest < rear.latest) {
			rear = s
		}
	}
	if rear == nil || rear.latest == math.MinInt64 {
		return rear, math.MinInt64
	}
	return rear, rear.latest - Slack.Milliseconds()
}
