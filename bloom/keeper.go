package bloom

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sendgate/sendgate"
)

const (
	replayLimit = 2 * time.Minute
	coverEvery  = time.Second      // how often a snapshot that is not covered is tried to be
	keepFor     = 10 * time.Minute // how long a change stays in the overlay beside a snapshot that has it
	// settleLimit is about how long a first snapshot is waited for that is
	// still being loaded.
	settleLimit = time.Minute
	// sayEvery is how often a problem is logged that goes on, in rounds.
	sayEvery = 300
)

// Replayer reads the change streams again. Package feed has one.
type Replayer interface {
	// Replay hands every change since a position, up to now, to apply. It is
	// an error if some of them may be missing.
	Replay(ctx context.Context, from sendgate.Position, apply func(sendgate.Consent, sendgate.Place)) error
}

// Keeper keeps a Live up to date: it finds the newest snapshot that is
// published, checks it whole, sees to it that the overlay knows of every change
// since, and only then puts it in the place of the one in use.
type Keeper struct {
	o     KeeperOptions
	poked chan struct{}

	// Of the goroutine that runs it.
	fetching  bool
	loaded    chan loaded // has room for the one that is being fetched
	setbacks  map[int64]*setback
	candidate *Snapshot // loaded, and not in use yet
	patience  patience  // with replays that fail
	replays   int64     // so far
	unfound   error     // why the newest published snapshot is not the candidate
	unused    error     // why the candidate is not in use
	rounds    int       // so far, at least one a second
	silent    int       // rounds since the problem was logged

	mu     sync.Mutex
	status Status
}

// KeeperOptions are what a Keeper is made of. All are required.
type KeeperOptions struct {
	Live             *Live
	Source           Source
	Replayer         Replayer
	Namespace        string
	Partitions       int
	MaxFalsePositive float64       // a snapshot that is worse is refused
	CacheDir         string        // of private copies; empty is the system's
	Poll             time.Duration // how often to look without having been told
	Log              *slog.Logger
	Loaded           func(LoadResult)
}

// LoadResult says what came of a snapshot that was published.
type LoadResult uint8

// The results.
const (
	Loaded      LoadResult = iota // it is in use
	LoadRefused                   // it is damaged, or not for this gate
	LoadFailed                    // it could not be fetched
	loadResultCount
)

// String is the result's name in metrics.
func (r LoadResult) String() string {
	return [loadResultCount]string{"loaded", "refused", "failed"}[r]
}

// Status is how a Keeper is doing.
type Status struct {
	// Settled says that what was published when this process began to follow
	// the change streams has been tried, or has taken too long to wait for.
	Settled bool
	// Problem is why the newest published snapshot is not in use, or what kept
	// it from being found out; nil if there is none.
	Problem error
}

// NewKeeper makes a Keeper. Run starts it.
func NewKeeper(o KeeperOptions) *Keeper {
	return &Keeper{o: o, poked: make(chan struct{}, 1), loaded: make(chan loaded, 1), setbacks: map[int64]*setback{}}
}

// Status tells how the keeper is doing.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

// Poke says that a snapshot was published. It never waits.
func (k *Keeper) Poke() {
	select {
	case k.poked <- struct{}{}:
	default: // somebody has said so already
	}
}

// Run keeps the snapshot until the context ends. It must run once.
func (k *Keeper) Run(ctx context.Context) {
	poll, cover := time.NewTicker(k.o.Poll), time.NewTicker(coverEvery)
	defer poll.Stop()
	defer cover.Stop()
	look := true
	for {
		followed := k.o.Live.overlay.WasLive()
		k.round(ctx, look)
		k.note(followed)
		select {
		case <-ctx.Done():
			if k.fetching {
				<-k.loaded
			}
			return
		case l := <-k.loaded:
			k.take(l)
			look = true // what is said of it has changed
		case <-k.poked:
			look = true
		case <-poll.C:
			look = true
		case <-cover.C:
			look = false
		}
	}
}

// note keeps what a round came to, and logs a problem when it begins and now
// and then while it goes on.
func (k *Keeper) note(followed bool) {
	problem := errors.Join(k.unfound, k.unused)
	k.rounds++
	settled := followed && !k.fetching || k.rounds > int(settleLimit/coverEvery)
	k.mu.Lock()
	old := k.status
	k.status = Status{Settled: old.Settled || settled, Problem: problem}
	k.mu.Unlock()
	k.silent++
	switch {
	case problem != nil && (old.Problem == nil || k.silent > sayEvery):
		k.silent = 0
		k.o.Log.Warn("the newest filter is not in use", "error", problem, "generation in use", k.generation())
	case problem == nil && old.Problem != nil:
		k.o.Log.Info("the newest filter is in use", "generation", k.generation())
	}
}

func (k *Keeper) generation() int64 {
	if s := k.o.Live.Snapshot(); s != nil {
		return s.header.Generation
	}
	return 0
}

func (k *Keeper) needsCover() bool {
	return k.o.Live.Snapshot() != nil && !k.o.Live.Current() && k.o.Live.overlay.Live()
}

// round looks for a newer snapshot, if it is to, and takes a loaded one into
// use; a snapshot in use that cannot be relied on is covered again. Attempts
// that have failed are made more and more rarely, but for a snapshot that is
// new.
func (k *Keeper) round(ctx context.Context, look bool) {
	if look {
		k.unfound = k.find(ctx)
	}
	if k.candidate == nil && !k.needsCover() || !k.patience.over() {
		return
	}
	if k.candidate != nil {
		k.unused = k.install(ctx)
	} else if err := k.recover(ctx); err != nil && ctx.Err() == nil {
		// Not a problem of the newest snapshot, but of all: Current tells.
		k.o.Log.Debug("the filter in use cannot be covered yet", "error", err)
	}
}
