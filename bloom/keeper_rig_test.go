package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
)

// shelf is a Source in memory.
type shelf struct {
	mu      sync.Mutex
	files   map[int64][]byte
	down    error
	fetches int
	hook    func(ctx context.Context, generation int64, w io.Writer) error // if set, it is asked first
}

func (s *shelf) Published(context.Context) (list []bloom.Published, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for generation, file := range s.files {
		list = append(list, bloom.Published{Generation: generation, Tag: fmt.Sprint(xxhash.Sum64(file))})
	}
	slices.SortFunc(list, func(a, b bloom.Published) int { return int(b.Generation - a.Generation) })
	return list, s.down
}

func (s *shelf) Fetch(ctx context.Context, generation int64, w io.Writer) error {
	s.mu.Lock()
	file, hook := s.files[generation], s.hook
	s.fetches++
	s.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, generation, w); err != nil {
			return err
		}
	}
	_, err := w.Write(file)
	return err
}

// fetched is how many fetches were begun.
func (s *shelf) fetched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

func (s *shelf) put(generation int64, file []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[int64][]byte{}
	}
	s.files[generation] = file
}

// tape is a Replayer of changes that are written by hand.
type tape struct {
	mu      sync.Mutex
	changes []sendgate.Consent // their places rise from 100
	err     error
	torn    int    // the change that cannot be read, and whatever follows; 0 is none
	lost    uint64 // the position, by its offset, that cannot be replayed from
	during  func()
	runs    int
}

func (t *tape) Replay(_ context.Context, from sendgate.Position, apply func(sendgate.Consent, sendgate.Place)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	if t.err != nil {
		return t.err
	}
	if from.Offsets[0].Millis == t.lost {
		return errors.New("the position is lost")
	}
	for i, c := range t.changes {
		at := sendgate.Place{Offset: sendgate.Offset{Millis: uint64(100 + i)}}
		switch {
		case from.Covers(at):
		case t.torn > 0 && i >= t.torn:
			return errors.New("no answer in time")
		default:
			apply(c, at)
		}
	}
	if t.during != nil {
		t.during()
	}
	return nil
}

func (t *tape) set(change func(*tape)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t)
}

// count is how many replays were tried.
func (t *tape) count() (n int) {
	t.set(func(t *tape) { n = t.runs })
	return n
}

// stand is a keeper with all that is around it.
type stand struct {
	overlay *bloom.Overlay
	live    *bloom.Live
	keeper  *bloom.Keeper
	shelf   *shelf
	tape    *tape
	results [3]atomic.Int64
	cache   string
	log     bytes.Buffer // to be read once it has stopped
	stop    func()
}

// newStand runs a keeper in a bubble of synctest.
func newStand(t *testing.T, size int) *stand {
	s := &stand{overlay: bloom.NewOverlay(size), shelf: &shelf{}, tape: &tape{}, cache: t.TempDir()}
	s.live = bloom.NewLive(s.overlay, func(sendgate.UserID, sendgate.Setting) {})
	s.keeper = bloom.NewKeeper(bloom.KeeperOptions{
		Live: s.live, Source: s.shelf, Replayer: s.tape, Namespace: "t", Partitions: 2, MaxFalsePositive: 0.001, CacheDir: s.cache, Poll: 10 * time.Second,
		Log: slog.New(slog.NewTextHandler(&s.log, nil)), Loaded: func(r bloom.LoadResult) { s.results[r].Add(1) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.keeper.Run(ctx) }()
	s.stop = func() { cancel(); <-ended }
	return s
}

// at is a plan of a generation whose position is at an offset.
func at(generation int64, millis uint64) bloom.Plan {
	p := plan()
	p.Generation = generation
	p.Position.Offsets = []sendgate.Offset{{Millis: millis}, {Millis: millis}}
	return p
}

func (s *stand) state() string {
	generation := int64(0)
	if snapshot := s.live.Snapshot(); snapshot != nil {
		generation = snapshot.Header().Generation
	}
	status := s.keeper.Status()
	text := fmt.Sprintf("%d current %t", generation, s.live.Current())
	if status.Problem != nil {
		text += " problem"
	}
	return text
}

func (s *stand) expect(t *testing.T, when, want string) {
	t.Helper()
	synctest.Wait()
	if got := s.state(); got != want {
		t.Errorf("%s: %s, not %s (%v)", when, got, want, s.keeper.Status().Problem)
	}
}
