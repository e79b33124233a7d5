package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

func TestOnce(t *testing.T) {
	p := newPlace(t)
	o, streams, progress := options(p, "a", "b", "c", "d", "e", "f", "g")
	o.Segments = 3
	streams.entries.Store(7)
	generation := generationOf(t, rebuild.New(o))
	s := p.snapshot(t, generation)
	h := s.Header()
	if generation != noon().Unix() || h.Generation != generation || h.Namespace != "t" || !h.BuiltAt.Equal(noon()) || h.Position.Token != "mark1" || h.Keys.OptOuts != 7 {
		t.Errorf("%+v", h)
	}
	hasAll(t, s, "a", "b", "c", "d", "e", "f", "g")
	if got := streams.told(); !slices.Equal(got, []int64{generation}) {
		t.Errorf("the gates were told of %v", got)
	}
	if want := []rebuild.Stage{rebuild.StageMark, rebuild.StageBuild, rebuild.StagePublish}; !slices.Equal(progress.stages, want) || progress.read.Load() != 7 {
		t.Errorf("stages %v, %d records", progress.stages, progress.read.Load())
	}
	if ends := progress.ended(); len(ends) != 1 || ends[0].err != nil || ends[0].built.Header().Generation != generation {
		t.Errorf("%v", ends)
	}
}

func hasAll(t *testing.T, s *bloom.Snapshot, users ...string) {
	t.Helper()
	for _, user := range users {
		r := optedOut(user)
		for key := range bloom.KeysOf(sendgate.ConsentOf(r.User, &r.Preferences), func(sendgate.Setting) bool { return true }) {
			if !s.Has(key) {
				t.Errorf("%s is not in it", user)
			}
		}
	}
}

func TestMoreSegmentsThanRecords(t *testing.T) {
	for _, users := range [][]string{nil, {"a", "b"}} {
		p := newPlace(t)
		o, _, _ := options(p, users...)
		o.Segments = 64
		s := p.snapshot(t, generationOf(t, rebuild.New(o)))
		if got := s.Header().Keys.Rejecting(); got != int64(len(users)) {
			t.Errorf("%d keys of %v", got, users)
		}
		hasAll(t, s, users...)
	}
}

func TestGenerationsGrow(t *testing.T) {
	p, now := newPlace(t), noon()
	o, _, _ := options(p, "a")
	o.Keep, o.Now = 100, func() time.Time { return now }
	b := rebuild.New(o)
	last := generationOf(t, b)
	for _, c := range []struct {
		what string
		do   func()
		want func() int64
	}{
		{"within the same second", func() {}, func() int64 { return last + 1 }},
		{"an hour later", func() { now = noon().Add(time.Hour) }, func() int64 { return noon().Add(time.Hour).Unix() }},
		{"the clock goes back", func() { now = noon().Add(-time.Hour) }, func() int64 { return last + 1 }},
		{"the clock is before its beginning", func() { now = time.Unix(-5, 0) }, func() int64 { return last + 1 }},
		{"there is a newer one", func() { p.put(t, last+1000) }, func() int64 { return last + 1001 }},
		{"another builder", func() { b = rebuild.New(o) }, func() int64 { return last + 1 }},
		{"the archive was emptied", func() { empty(t, p) }, func() int64 { return last + 1 }},
		{"it was emptied before another builder came", func() { empty(t, p); b, now = rebuild.New(o), noon().Add(2*time.Hour) },
			func() int64 { return noon().Add(2 * time.Hour).Unix() }},
	} {
		c.do()
		got := generationOf(t, b)
		if got != c.want() || got <= last {
			t.Errorf("%s: generation %d after %d, want %d", c.what, got, last, c.want())
		}
		if newest := p.generations(t)[0]; newest != got {
			t.Errorf("%s: %d is the newest, not %d", c.what, newest, got)
		}
		last = got
	}
}

func empty(t *testing.T, p place) {
	t.Helper()
	for _, g := range p.generations(t) {
		if err := os.Remove(filepath.Join(p.dir, fmt.Sprintf("t-%020d.filter", g))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOvertaken has another builder publish while this one reads the store.
func TestOvertaken(t *testing.T) {
	for what, theirs := range map[string]int64{"the same generation": 0, "a newer one": 5} {
		p := newPlace(t)
		o, streams, progress := options(p)
		o.Segments = 1
		o.Store = scanner(func(_ context.Context, _, _ int, each func(*prefs.Record) error) error {
			p.put(t, noon().Unix()+theirs)
			return each(optedOut("a"))
		})
		built, err := rebuild.New(o).Once(t.Context())
		if !errors.Is(err, rebuild.ErrOvertaken) || built != nil {
			t.Errorf("%s: %v, %v", what, built, err)
		}
		if got := p.generations(t); !slices.Equal(got, []int64{noon().Unix() + theirs}) || string(p.fetch(t, got[0])) != "theirs" {
			t.Errorf("%s: %v is published", what, got)
		}
		if got := streams.told(); len(got) != 0 {
			t.Errorf("%s: the gates were told of %v", what, got)
		}
		if ends := progress.ended(); len(ends) != 1 || ends[0].built != nil || !errors.Is(ends[0].err, rebuild.ErrOvertaken) {
			t.Errorf("%s: %v", what, ends)
		}
	}
}

// together is an archive whose builders meet before they publish.
type together struct {
	rebuild.Archive
	meet func()
}

func (a together) Publish(ctx context.Context, generation int64, write func(io.Writer) error) error {
	a.meet()
	return a.Archive.Publish(ctx, generation, write)
}

// TestBuildersAtTheSameMoment has several builders find the same generation
// free, and publish it at once.
func TestBuildersAtTheSameMoment(t *testing.T) {
	const builders, rounds = 4, 5
	p, now := newPlace(t), noon()
	for range rounds {
		now = now.Add(time.Minute)
		var meeting, running sync.WaitGroup
		meeting.Add(builders)
		builts, errs := make([]*bloom.Built, builders), make([]error, builders)
		for i := range builders {
			o, streams, _ := options(together{p.open(t), func() { meeting.Done(); meeting.Wait() }}, "a")
			streams.owner, o.Keep, o.Now = fmt.Sprint("builder ", i, " mark "), 100, func() time.Time { return now }
			running.Go(func() { builts[i], errs[i] = rebuild.New(o).Once(t.Context()) })
		}
		running.Wait()
		winner := slices.Index(errs, nil)
		if winner < 0 {
			t.Fatalf("nobody has published: %v", errs)
		}
		for i, err := range errs {
			if i != winner && (!errors.Is(err, rebuild.ErrOvertaken) || builts[i] != nil) {
				t.Errorf("builder %d: %v, %v; builder %d has published", i, builts[i], err, winner)
			}
		}
		if token := p.snapshot(t, now.Unix()).Header().Position.Token; token != fmt.Sprint("builder ", winner, " mark 1") {
			t.Errorf("%q is published, and builder %d says that it did", token, winner)
		}
	}
	if got := p.generations(t); len(got) != rounds {
		t.Errorf("%v are published in %d rounds", got, rounds)
	}
}

// failing is an archive that fails in some calls.
type failing struct {
	rebuild.Archive
	list, publish, prune error
	lists                int // that succeed before
}

func (f *failing) Generations(ctx context.Context) ([]archive.Entry, error) {
	if f.lists--; f.lists < 0 && f.list != nil {
		return nil, f.list
	}
	return f.Archive.Generations(ctx)
}

func (f *failing) Publish(ctx context.Context, generation int64, write func(io.Writer) error) error {
	if f.publish != nil {
		return errors.Join(f.publish, write(io.Discard))
	}
	return f.Archive.Publish(ctx, generation, write)
}

func (f *failing) Prune(ctx context.Context, keep int) error {
	return errors.Join(f.prune, f.Archive.Prune(ctx, keep))
}

func TestAFailurePublishesNothing(t *testing.T) {
	for what, breakIt := range map[string]func(o *rebuild.Options, s *streams, a *failing){
		"catalog": func(o *rebuild.Options, _ *streams, _ *failing) {
			o.Catalog = func() (*sendgate.Catalog, error) { return nil, errBroken }
		},
		"mark":         func(_ *rebuild.Options, s *streams, _ *failing) { s.failMark.Store(true) },
		"added":        func(_ *rebuild.Options, s *streams, _ *failing) { s.failAdded.Store(true) },
		"list":         func(_ *rebuild.Options, _ *streams, a *failing) { a.list = errBroken },
		"list, later":  func(_ *rebuild.Options, _ *streams, a *failing) { a.list, a.lists = errBroken, 1 },
		"publish":      func(_ *rebuild.Options, _ *streams, a *failing) { a.publish = errBroken },
		"no segment":   func(o *rebuild.Options, _ *streams, _ *failing) { o.Segments = 0 },
		"no folder":    func(o *rebuild.Options, _ *streams, _ *failing) { o.WorkDir = filepath.Join(t.TempDir(), "missing") },
		"no namespace": func(o *rebuild.Options, _ *streams, _ *failing) { o.Namespace = "" },
		"store": func(o *rebuild.Options, _ *streams, _ *failing) {
			o.Store = scanner(func(context.Context, int, int, func(*prefs.Record) error) error { return errBroken })
		},
	} {
		p := newPlace(t)
		a := &failing{Archive: p}
		o, streams, progress := options(a, "a")
		breakIt(&o, streams, a)
		built, err := rebuild.New(o).Once(t.Context())
		if built != nil || err == nil || !strings.HasPrefix(what, "no ") && !errors.Is(err, errBroken) {
			t.Errorf("%s: %v, %v", what, built, err)
		}
		if got, told := p.generations(t), streams.told(); len(got)+len(told) != 0 {
			t.Errorf("%s: %v is published, and the gates were told of %v", what, got, told)
		}
		if ends := progress.ended(); len(ends) != 1 || ends[0].built != nil || ends[0].err == nil {
			t.Errorf("%s: %v", what, ends)
		}
	}
}

// TestWhatFollowsMayFail has all go well until the filter is published.
func TestWhatFollowsMayFail(t *testing.T) {
	for what, c := range map[string]struct {
		breakIt func(s *streams, a *failing)
		says    string
		told    int
	}{
		"announce": {func(s *streams, _ *failing) { s.failAnnounced.Store(true) }, "the filter is published, and the gates could not be told", 0},
		"prune":    {func(_ *streams, a *failing) { a.prune = errors.Join(errBroken) }, "broken", 1},
	} {
		p := newPlace(t)
		for g := range int64(5) {
			p.put(t, g+1)
		}
		a := &failing{Archive: p}
		o, streams, progress := options(a, "a")
		c.breakIt(streams, a)
		built, err := rebuild.New(o).Once(t.Context())
		if built == nil || !errors.Is(err, errBroken) || !strings.Contains(err.Error(), c.says) {
			t.Fatalf("%s: %v, %v", what, built, err)
		}
		hasAll(t, p.snapshot(t, built.Header().Generation), "a")
		if got := p.generations(t); !slices.Equal(got, []int64{noon().Unix(), 5, 4}) || len(streams.told()) != c.told {
			t.Errorf("%s: %v is published, and the gates were told of %v", what, got, streams.told())
		}
		if ends := progress.ended(); len(ends) != 1 || ends[0].built != built || ends[0].err == nil {
			t.Errorf("%s: %v", what, ends)
		}
	}
}

func TestPruneKeeps(t *testing.T) {
	for _, keep := range []int{1, 3} {
		p := newPlace(t)
		o, _, _ := options(p, "a")
		o.Keep = keep
		b := rebuild.New(o)
		var want []int64
		for range keep + 2 {
			want = append([]int64{generationOf(t, b)}, want...)
		}
		if got := p.generations(t); !slices.Equal(got, want[:keep]) {
			t.Errorf("%v are kept, want %v", got, want[:keep])
		}
	}
}
