package rebuild

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sendgate/sendgate/bloom"
)

// Lines is a Progress that writes a log line for each stage.
type Lines struct {
	log     *slog.Logger
	now     func() time.Time
	records atomic.Int64
	began   time.Time // the rebuild, and its stage
	stage   time.Time
	at      Stage
}

// NewLines makes Lines.
func NewLines(log *slog.Logger, now func() time.Time) *Lines { return &Lines{log: log, now: now} }

// Stage says what the stage before has taken.
func (l *Lines) Stage(s Stage) {
	now := l.now()
	if s == StageMark {
		l.records.Store(0)
		l.began = now
	} else {
		l.ended(now)
	}
	l.at, l.stage = s, now
}

func (l *Lines) ended(now time.Time) {
	attrs := []any{"stage", l.at.String(), "took", now.Sub(l.stage).String()}
	if l.at == StageBuild {
		attrs = append(attrs, "records", l.records.Load())
	}
	l.log.Info("a stage of the rebuild is done", attrs...)
}

// Read counts records.
func (l *Lines) Read(records int) { l.records.Add(int64(records)) }

// Done says what was built, or why nothing was.
func (l *Lines) Done(built *bloom.Built, err error) {
	switch {
	case errors.Is(err, ErrOvertaken):
		l.log.Info("no new filter was published here", "why", err)
		return
	case built == nil:
		l.log.Error("no new filter was built; the one in use stays", "error", err)
		return
	}
	now := l.now()
	l.ended(now)
	if err != nil {
		l.log.Error("the filter was built, and not all that follows was done", "error", err)
	}
	h := built.Header()
	l.log.Info("a filter was built", "generation", h.Generation, "took", now.Sub(l.began).String(), "records", l.records.Load(),
		"opt_outs", h.Keys.Rejecting(), "opt_ins", h.Keys.OptIns, "bytes", (h.OptOuts.Words+h.OptIns.Words)*8,
		"false_positive_rate", h.FalsePositiveRate(), "measured", built.Measured())
}
