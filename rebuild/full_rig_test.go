package rebuild_test

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	bytesize "github.com/dustin/go-humanize" //nolint:misspell // is its name

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/catalogfile"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/rebuild"
)

// fullSize is a builder, an archive, and a gate with a keeper.
type fullSize struct {
	t        *testing.T
	users    int
	builder  *rebuild.Builder
	progress *stagesTook
	live     *bloom.Live
	keeper   *bloom.Keeper
	gate     *sendgate.Gate
	random   *rand.Rand
	table    *tabwriter.Writer
}

func newFullSize(t *testing.T) *fullSize {
	t.Helper()
	f := &fullSize{t: t, users: int(*fullKeys) / len(fullSettings), progress: &stagesTook{}, random: rand.New(rand.NewPCG(1, 2)), table: newTable(t)}
	p, work := place{dir: folderIn(t, "published")}, folderIn(t, "work")
	for _, dir := range []string{p.dir, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.Archive = p.open(t)
	f.builder = fullBuilder(p, work, f.users, f.progress)
	overlay := bloom.NewOverlay(1000)
	overlay.SetLive(true)
	f.live = bloom.NewLive(overlay, func(sendgate.UserID, sendgate.Setting) {})
	f.keeper = bloom.NewKeeper(bloom.KeeperOptions{
		Live: f.live, Source: fullShelf{p.Archive}, Replayer: quietStreams{}, Namespace: "t", Partitions: 1, MaxFalsePositive: 0.001,
		CacheDir: work, Poll: time.Hour, Log: slog.New(slog.DiscardHandler), Loaded: func(bloom.LoadResult) {},
	})
	f.gate = sendgate.NewGate(sendgate.Options{Catalog: catalogfile.Sample(), Overlay: overlay, Filter: f.live, Observer: unobserved{}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.keeper.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return f
}

// fullSettings are what every synthetic user has opted out of.
var fullSettings = []sendgate.Setting{
	{Topic: "promotions", Channel: "push"}, {Topic: "promotions", Channel: "email"}, {Topic: "newsletter", Channel: "email"}, {Topic: "recommendations", Channel: "push"},
}

func fullUser(i int) sendgate.UserID { return sendgate.UserID("u_" + strconv.Itoa(i)) }

// synthetic is a store of so many users.
func synthetic(users int) scanner {
	return func(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
		r := &prefs.Record{Preferences: sendgate.Preferences{Revision: 1, Settings: sendgate.Settings{}}}
		for _, s := range fullSettings {
			r.Settings[s] = false
		}
		for i := segment; i < users; i += segments {
			r.User = fullUser(i)
			if err := each(r); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
}

// fullShelf is an archive as a keeper wants it.
type fullShelf struct{ *archive.Archive }

func (s fullShelf) Published(ctx context.Context) (list []bloom.Published, err error) {
	entries, err := s.Generations(ctx)
	for _, e := range entries {
		list = append(list, bloom.Published{Generation: e.Generation, Tag: e.ETag})
	}
	return list, err
}

func (s fullShelf) Fetch(ctx context.Context, generation int64, w io.Writer) error {
	return s.Archive.Fetch(ctx, generation, w)
}

// quietStreams are change streams in which nothing stands.
type quietStreams struct{}

func (quietStreams) Replay(context.Context, sendgate.Position, func(sendgate.Consent, sendgate.Place)) error {
	return nil
}

// unobserved is a gate's observer that nobody asks.
type unobserved struct{}

func (unobserved) Decided(*sendgate.Check, *sendgate.Decision, sendgate.Mode) {}
func (unobserved) Settled(*sendgate.Settlement)                               {}
func (unobserved) StepTook(sendgate.Step, int, time.Duration)                 {}
func (unobserved) ZoneFellBack()                                              {}

// stagesTook remembers how long each stage took.
type stagesTook struct {
	begun [3]time.Time
	ended time.Time
}

func (s *stagesTook) Stage(at rebuild.Stage)   { s.begun[at] = time.Now() }
func (*stagesTook) Read(int)                   {}
func (s *stagesTook) Done(*bloom.Built, error) { s.ended = time.Now() }

func (s *stagesTook) took() (took [3]time.Duration) {
	for i, begun := range s.begun[:2] {
		took[i] = s.begun[i+1].Sub(begun)
	}
	took[2] = s.ended.Sub(s.begun[2])
	return took
}

// memory is what the process has of the machine's: its own, and with the files
// that it has mapped.
func memory(t *testing.T) (anonymous, all int64) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal("this system does not tell what memory a process has")
	}
	for row := range strings.Lines(string(status)) {
		fields := strings.Fields(row)
		if len(fields) != 3 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "RssAnon:":
			anonymous = kib << 10
		case "VmRSS:":
			all = kib << 10
		}
	}
	return anonymous, all
}

// watchMemory watches it until the result is called, which is the most of both.
func watchMemory(t *testing.T) func() (anonymous, all int64) {
	t.Helper()
	var mostAnonymous, mostOfAll int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			a, b := memory(t)
			mostAnonymous, mostOfAll = max(mostAnonymous, a), max(mostOfAll, b)
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() (int64, int64) {
		close(stop)
		<-stopped
		return mostAnonymous, mostOfAll
	}
}

func size(n int64) string { return bytesize.IBytes(uint64(n)) }
