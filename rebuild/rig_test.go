package rebuild_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// scanner is a store of a function.
type scanner func(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error

func (s scanner) Scan(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
	return s(ctx, segment, segments, each)
}

// holding is a store of users who have opted out of promotions by push.
func holding(users ...string) scanner {
	return func(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
		for i := segment; i < len(users); i += segments {
			if err := errors.Join(ctx.Err(), each(optedOut(users[i]))); err != nil {
				return err
			}
		}
		return nil
	}
}

func optedOut(user string) *prefs.Record {
	return &prefs.Record{User: sendgate.UserID(user), Preferences: sendgate.Preferences{
		Revision: 1, Settings: sendgate.Settings{{Topic: "promotions", Channel: "push"}: false},
	}}
}

// streams are change streams of one partition. Every mark has a token of its
// own.
type streams struct {
	owner                              string
	marks, entries                     atomic.Int64
	failMark, failAdded, failAnnounced atomic.Bool

	mu        sync.Mutex
	announced []int64
}

func (s *streams) Mark(context.Context) (sendgate.Position, error) {
	if s.failMark.Load() {
		return sendgate.Position{}, errBroken
	}
	return sendgate.Position{
		Token:   fmt.Sprint(s.owner, s.marks.Add(1)),
		Offsets: []sendgate.Offset{{Millis: 1}},
	}, nil
}

func (s *streams) AnnounceSnapshot(_ context.Context, generation int64) error {
	if s.failAnnounced.Load() {
		return errBroken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announced = append(s.announced, generation)
	return nil
}

func (s *streams) Added(context.Context) (int64, error) {
	if s.failAdded.Load() {
		return 0, errBroken
	}
	return s.entries.Load(), nil
}

func (s *streams) told() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.announced)
}

// place is an archive in a folder.
type place struct {
	*archive.Archive
	dir string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{dir: t.TempDir()}
	p.Archive = p.open(t)
	return p
}

// open opens the place as another builder does.
func (p place) open(t *testing.T) *archive.Archive {
	t.Helper()
	a, err := archive.Open(t.Context(), "file://"+p.dir, "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func (p place) put(t *testing.T, generation int64) {
	t.Helper()
	err := p.Publish(t.Context(), generation, func(w io.Writer) error { _, err := w.Write([]byte("theirs")); return err })
	if err != nil {
		t.Fatal(err)
	}
}

func (p place) generations(t *testing.T) (all []int64) {
	t.Helper()
	entries, err := p.Generations(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Generation)
	}
	return all
}

// fetch is what was published as a generation.
func (p place) fetch(t *testing.T, generation int64) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := p.Fetch(t.Context(), generation, &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// snapshot opens what was published as a generation.
func (p place) snapshot(t *testing.T, generation int64) *bloom.Snapshot {
	t.Helper()
	s, err := bloom.Open(filepath.Join(p.dir, fmt.Sprintf("t-%020d.filter", generation)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// progress remembers how rebuilds ended.
type progress struct {
	now func() time.Time

	mu     sync.Mutex
	stages []rebuild.Stage
	ends   []end
	read   atomic.Int64
}

type end struct {
	at    time.Time
	built *bloom.Built
	err   error
}

func (p *progress) Stage(s rebuild.Stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stages = append(p.stages, s)
}

func (p *progress) Read(records int) { p.read.Add(int64(records)) }

func (p *progress) Done(built *bloom.Built, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, end{p.now(), built, err})
}

func (p *progress) ended() []end {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ends)
}

// noon is the clock of tests that do not move it.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// options are complete ones, for a test to change.
func options(a rebuild.Archive, users ...string) (rebuild.Options, *streams, *progress) {
	s, p := &streams{owner: "mark"}, &progress{now: noon}
	return rebuild.Options{
		Store: holding(users...), Streams: s, Archive: a, Namespace: "t",
		Catalog: func() (*sendgate.Catalog, error) { return catalogfile.Sample(), nil },
		Memory:  1 << 20, MaxFalsePositive: 0.001, AimFalsePositive: 1e-6, Segments: 4, Keep: 3, Progress: p, Now: noon,
	}, s, p
}

// generationOf is what a rebuild that must succeed has published.
func generationOf(t *testing.T, b *rebuild.Builder) int64 {
	t.Helper()
	built, err := b.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return built.Header().Generation
}
