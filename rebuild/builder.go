// Package rebuild owns the making of a new filter from the store: one rebuild
// from end to end, and when the next one is due. What a filter is, package
// bloom knows; this package puts the parts in their order.
//
// The order is what makes a filter right. The change streams are marked first
// and the store is read afterwards, consistently, so that a change is in what
// was read, or stands in a stream after the mark, or both. A snapshot carries
// its marks, and a gate replays the streams from there.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/prefs"
)

// Streams are the change streams. Package feed has them.
type Streams interface {
	// Mark marks the end of every stream.
	Mark(ctx context.Context) (sendgate.Position, error)
	// AnnounceSnapshot tells every gate that a generation was published.
	AnnounceSnapshot(ctx context.Context, generation int64) error
	// Added is how many entries were ever appended, as far as Redis knows.
	Added(ctx context.Context) (int64, error)
}

// Archive is where filters are published. Package bloom/archive has one.
type Archive interface {
	Generations(ctx context.Context) ([]archive.Entry, error)
	Publish(ctx context.Context, generation int64, write func(io.Writer) error) error
	Prune(ctx context.Context, keep int) error
}

// Progress is told how a rebuild gets on.
type Progress interface {
	// Stage says that a stage was begun.
	Stage(s Stage)
	// Read says that so many more records were read. It is called by several
	// goroutines at once, between two calls of Stage.
	Read(records int)
	// Done says how it ended. built is what was published, nil if nothing was.
	Done(built *bloom.Built, err error)
}

// Stage is one stage of a rebuild.
type Stage uint8

// The stages, in order.
const (
	StageMark    Stage = iota // the change streams are marked
	StageBuild                // the store is read, and the filter is built of it
	StagePublish              // the snapshot is written to the archive
	stageCount
)

// String is the stage's name, for people.
func (s Stage) String() string {
	return [stageCount]string{"mark", "read and build", "publish"}[s]
}

// ErrOvertaken is the end of a rebuild that another builder has overtaken.
// Nothing was published by this one.
var ErrOvertaken = errors.New("another builder has published a filter meanwhile")

// Options are what a Builder is made of. All are required, but for KeyMemory
// and WorkDir.
type Options struct {
	Store     prefs.Scanner
	Streams   Streams
	Archive   Archive
	Catalog   func() (*sendgate.Catalog, error) // says which opt-ins are worth keeping
	Namespace string

	Memory                             int64  // bytes, of the filter
	KeyMemory                          int64  // bytes, of keys while it is built; more are kept on disk
	WorkDir                            string // for those, and for the filter until it is published; empty is the system's
	MaxFalsePositive, AimFalsePositive float64
	Segments                           int // of the store that are read at once, from 1
	Keep                               int // how many published filters are kept

	Progress Progress
	Now      func() time.Time
}

// Builder rebuilds the filter. It runs one rebuild at a time.
type Builder struct {
	o    Options
	base int64 // what Added was when the streams were last marked
	last int64 // the newest generation that was given to a filter
}

// New makes a Builder.
func New(o Options) *Builder { return &Builder{o: o} }

// Once builds one filter, publishes it and tells the gates. A failure
// publishes nothing and returns no filter; only telling the gates and dropping
// old filters may fail without harm, and are an error beside the filter that is
// published.
func (b *Builder) Once(ctx context.Context) (*bloom.Built, error) {
	built, err := b.once(ctx)
	b.o.Progress.Done(built, err)
	return built, err
}

func (b *Builder) once(ctx context.Context) (*bloom.Built, error) {
	catalog, err := b.o.Catalog()
	if err != nil {
		return nil, err
	}
	generation, err := b.next(ctx)
	if err != nil {
		return nil, err
	}
	plan := bloom.Plan{
		Namespace: b.o.Namespace, Generation: generation, BuiltAt: b.o.Now(), Covered: catalog.OffByDefault(), Memory: b.o.Memory,
		MaxFalsePositive: b.o.MaxFalsePositive, AimFalsePositive: b.o.AimFalsePositive,
		KeyMemory: b.o.KeyMemory, WorkDir: b.o.WorkDir,
	}
	b.o.Progress.Stage(StageMark)
	if plan.Position, err = b.o.Streams.Mark(ctx); err != nil {
		return nil, err
	}
	if b.base, err = b.o.Streams.Added(ctx); err != nil {
		return nil, err
	}
	b.o.Progress.Stage(StageBuild)
	built, err := b.build(ctx, plan)
	if err != nil {
		return nil, err
	}
	b.o.Progress.Stage(StagePublish)
	err, closed := b.publish(ctx, built), built.Close()
	if err != nil {
		return nil, errors.Join(err, closed)
	}
	return built, errors.Join(closed, b.follow(ctx, generation))
}

// next is the generation of the next filter: the time, so that an archive that
// was emptied does not begin again below what gates have loaded, and more than
// the last one, so that a clock that went back does no harm.
func (b *Builder) next(ctx context.Context) (int64, error) {
	newest, err := b.newest(ctx)
	if err != nil {
		return 0, err
	}
	b.last = max(newest+1, b.last+1, b.o.Now().Unix())
	return b.last, nil
}

func (b *Builder) newest(ctx context.Context) (int64, error) {
	published, err := b.o.Archive.Generations(ctx)
	if err != nil || len(published) == 0 {
		return 0, err
	}
	return published[0].Generation, nil
}

// build reads all segments of the store at once. When one of them fails, the
// others stop, and its error is the one that is returned.
func (b *Builder) build(ctx context.Context, plan bloom.Plan) (*bloom.Built, error) {
	if b.o.Segments < 1 {
		return nil, fmt.Errorf("the store must be read in 1 segment or more, not %d", b.o.Segments)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	covered := map[sendgate.Setting]bool{}
	for _, s := range plan.Covered {
		covered[s] = true
	}
	segments := make([]iter.Seq2[bloom.Key, error], b.o.Segments)
	for i := range segments {
		segments[i] = func(yield func(bloom.Key, error) bool) {
			err := b.scan(ctx, i, covered, func(k bloom.Key) bool { return yield(k, nil) })
			if err == nil {
				return
			}
			stop(err) // the first one counts: others are about having been stopped
			if cause := context.Cause(ctx); !errors.Is(cause, errEnough) {
				yield(bloom.Key{}, cause)
			}
		}
	}
	built, err := bloom.Build(ctx, plan, segments...)
	if err == nil && ctx.Err() != nil { // what was not read to its end is no filter
		return nil, errors.Join(context.Cause(ctx), built.Close())
	}
	return built, err
}

// scan yields the keys of one segment.
func (b *Builder) scan(ctx context.Context, segment int, covered map[sendgate.Setting]bool, yield func(bloom.Key) bool) error {
	err := b.o.Store.Scan(ctx, segment, b.o.Segments, func(r *prefs.Record) error {
		b.o.Progress.Read(1)
		for key := range bloom.KeysOf(sendgate.ConsentOf(r.User, &r.Preferences), func(s sendgate.Setting) bool { return covered[s] }) {
			if !yield(key) {
				return errEnough
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("read segment %d of %d of the store: %w", segment, b.o.Segments, err)
	}
	return err
}

// errEnough ends a scan whose keys nobody wants any more. Who does not want
// them says why.
var errEnough = errors.New("no more keys are wanted")

// publish publishes a filter unless there is a newer one by now.
func (b *Builder) publish(ctx context.Context, built *bloom.Built) error {
	generation := built.Header().Generation
	newest, err := b.newest(ctx)
	switch {
	case err != nil:
		return err
	case newest >= generation:
		return ErrOvertaken
	}
	err = b.o.Archive.Publish(ctx, generation, func(w io.Writer) error {
		_, err := built.WriteTo(w)
		return err
	})
	if errors.Is(err, archive.ErrTaken) {
		return ErrOvertaken
	}
	return err
}

// follow does what follows on a publication. The filter is published whatever
// becomes of it.
func (b *Builder) follow(ctx context.Context, generation int64) error {
	err := b.o.Streams.AnnounceSnapshot(ctx, generation)
	if err != nil {
		err = fmt.Errorf("the filter is published, and the gates could not be told: they find it by themselves: %w", err)
	}
	return errors.Join(err, b.o.Archive.Prune(ctx, b.o.Keep))
}
