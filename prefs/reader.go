package prefs

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/singleflight"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/guard"
)

// Cache holds users' preferences where every gate can reach them. Package
// rediscache has one.
type Cache interface {
	// Get reads many users' entries in one round trip. The answers are in the
	// order of the users.
	Get(ctx context.Context, users []sendgate.UserID) []Cached
	// Lease asks for the right to fill a user's entry. It is granted if the
	// entry is absent or older than a revision, and is not leased to somebody
	// else. If the entry is there after all, that is the answer.
	Lease(ctx context.Context, user sendgate.UserID, atLeast int64, token string) (granted bool, c Cached)
	// Fill stores preferences if the lease of that token still stands.
	Fill(ctx context.Context, user sendgate.UserID, token string, p *sendgate.Preferences) error
}

// Cached is what the cache holds of a user: nothing, preferences, or an error
// that kept them from being read.
type Cached struct {
	Preferences *sendgate.Preferences
	Value       string // of Preferences from Get, as the cache holds them
	Err         error
}

// FillLimit is how long a read of the store may take that fills the cache. It
// outlives the check that asked for it. The guard of the store should have it
// as its limit.
const FillLimit = time.Second

// maxFlights bounds the reads of the store under way.
const maxFlights = 1024

var (
	errTooManyReads = errors.New("store: too many reads under way")
	errClosed       = errors.New("store: the gate is shutting down")
	errStoreBehind  = errors.New("store: it holds an older revision than this gate has seen")
)

// Reader reads preferences for checks: from the cache, and on a miss from the
// store. It remembers what it has found in the cache lately. It implements
// sendgate.Records and sendgate.Memory.
type Reader struct {
	cache      Cache
	store      RecordStore
	cacheGuard *guard.Guard
	fillGuard  *guard.Guard
	storeGuard *guard.Guard
	patience   time.Duration
	observe    func(CacheOutcome)
	memory     *memory
	flights    singleflight.Group
	life       context.Context // of reads that fill the cache
	stop       context.CancelFunc

	mu      sync.Mutex
	closed  bool
	flying  int
	running sync.WaitGroup
}

// CacheOutcome says what a look into the cache led to.
type CacheOutcome uint8

// The outcomes.
const (
	CacheHit     CacheOutcome = iota
	CacheMiss                 // not there
	CacheStale                // there, but older than this gate knows of
	CacheDown                 // no answer
	CacheHeld                 // not looked into: it was found to be as remembered
	CacheRefuted              // the same, and it was not
)

// String names the outcome, for metrics.
func (o CacheOutcome) String() string {
	return [...]string{"hit", "miss", "stale", "down", "held", "refuted"}[o]
}

// ReaderOptions are what a Reader is made of. All but Memory are required.
type ReaderOptions struct {
	Cache      Cache
	Store      RecordStore
	CacheGuard *guard.Guard  // of what a check waits for
	FillGuard  *guard.Guard  // of filling the cache, so that a storm of misses does not look like a cache that is down
	StoreLimit time.Duration // how long a check waits for the store
	StoreGuard *guard.Guard
	Observe    func(CacheOutcome)
	Memory     int // bytes of values that are remembered; 0: none
}

// NewReader makes a Reader. Close ends it.
func NewReader(o ReaderOptions) *Reader {
	life, stop := context.WithCancel(context.Background())
	return &Reader{
		cache: o.Cache, store: o.Store, cacheGuard: o.CacheGuard, fillGuard: o.FillGuard, storeGuard: o.StoreGuard, patience: o.StoreLimit,
		memory: newMemory(o.Memory), observe: o.Observe, life: life, stop: stop,
	}
}

// Close ends the reads that still fill the cache and waits for them.
func (r *Reader) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.running.Wait()
}

// Read answers every ask in order: one round trip to the cache for all, and
// for each miss a read of the store, which those who ask for the same user
// share.
func (r *Reader) Read(ctx context.Context, asks []sendgate.RecordAsk) []sendgate.RecordAnswer {
	answers := make([]sendgate.RecordAnswer, len(asks))
	var waiting []pendingRead
	for i, c := range r.fetch(ctx, asks) {
		ask := asks[i]
		switch {
		case c.Err != nil:
			r.observe(CacheDown)
			answers[i] = sendgate.RecordAnswer{CacheDown: true, Err: c.Err}
			if ask.FallBack {
				waiting = append(waiting, pendingRead{i, r.fly(ask, false)})
			}
		case c.Preferences != nil && c.Preferences.Revision >= ask.AtLeast:
			r.observe(CacheHit)
			answers[i].Preferences = c.Preferences
			r.memory.keep(ask.User, sendgate.Remembered{Preferences: c.Preferences, Value: c.Value})
		default:
			if c.Preferences == nil {
				r.observe(CacheMiss)
			} else {
				r.observe(CacheStale)
			}
			waiting = append(waiting, pendingRead{i, r.fly(ask, true)})
		}
	}
	if len(waiting) > 0 {
		r.wait(ctx, waiting, answers)
	}
	return answers
}

// fetch looks into the cache, under its guard.
func (r *Reader) fetch(ctx context.Context, asks []sendgate.RecordAsk) []Cached {
	users := make([]sendgate.UserID, len(asks))
	for i, a := range asks {
		users[i] = a.User
	}
	var cached []Cached
	err := r.cacheGuard.Do(ctx, func(ctx context.Context) error {
		cached = r.cache.Get(ctx, users)
		var failed error
		for _, c := range cached {
			if c.Err == nil {
				return nil // a part of it at least is alive
			}
			failed = c.Err
		}
		return failed
	})
	if cached == nil { // the guard did not ask
		cached = make([]Cached, len(asks))
		for i := range cached {
			cached[i].Err = err
		}
	}
	return cached
}

type pendingRead struct {
	index  int
	result <-chan singleflight.Result
}

func (r *Reader) wait(ctx context.Context, waiting []pendingRead, answers []sendgate.RecordAnswer) {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	for _, w := range waiting {
		select {
		case got := <-w.result:
			answers[w.index].Err = got.Err
			if got.Err == nil {
				answers[w.index].Preferences = got.Val.(*sendgate.Preferences)
			}
		case <-ctx.Done():
			answers[w.index].Err = errors.Join(errors.New("store: no answer in time"), ctx.Err())
		}
	}
}

// fly reads the store for one user, joining a read that is under way. Only a
// read that was begun with the same knowledge is joined: one that began before
// a change was acknowledged here does not serve checks after it.
func (r *Reader) fly(ask sendgate.RecordAsk, fill bool) <-chan singleflight.Result {
	key := strconv.FormatInt(ask.AtLeast, 10) + " " + strconv.FormatBool(fill) + " " + string(ask.User)
	return r.flights.DoChan(key, func() (any, error) {
		if err := r.enter(); err != nil {
			return nil, err
		}
		defer r.leave()
		ctx, cancel := context.WithTimeout(r.life, FillLimit)
		defer cancel()
		return r.load(ctx, ask, fill)
	})
}

func (r *Reader) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return errClosed
	case r.flying == maxFlights:
		return errTooManyReads
	}
	r.flying++
	r.running.Add(1)
	return nil
}

func (r *Reader) leave() {
	r.mu.Lock()
	r.flying--
	r.mu.Unlock()
	r.running.Done()
}

// load reads the store, and fills the cache if it may.
func (r *Reader) load(ctx context.Context, ask sendgate.RecordAsk, fill bool) (*sendgate.Preferences, error) {
	var token string
	if fill {
		var there *sendgate.Preferences
		if token, there = r.lease(ctx, ask); there != nil {
			return there, nil
		}
	}
	var record *Record
	err := r.storeGuard.Do(ctx, func(ctx context.Context) (err error) {
		record, err = r.store.Get(ctx, ask.User)
		return err
	})
	if err != nil {
		return nil, err
	}
	if record.Revision < ask.AtLeast {
		return nil, errStoreBehind
	}
	if token != "" {
		// A cache that was not filled is filled by the next check.
		_ = r.fillGuard.Do(ctx, func(ctx context.Context) error {
			return r.cache.Fill(ctx, ask.User, token, &record.Preferences)
		})
	}
	return &record.Preferences, nil
}

// lease takes a lease before the store is read, so that what is filled later
// cannot be older than a change that has come and gone in between. The token
// is empty if none was granted; there is what somebody else has filled.
func (r *Reader) lease(ctx context.Context, ask sendgate.RecordAsk) (token string, there *sendgate.Preferences) {
	token = ulid.Make().String()
	var granted bool
	var found Cached
	err := r.fillGuard.Do(ctx, func(ctx context.Context) error {
		granted, found = r.cache.Lease(ctx, ask.User, ask.AtLeast, token)
		return found.Err
	})
	switch {
	case err != nil:
		return "", nil
	case found.Preferences != nil && found.Preferences.Revision >= ask.AtLeast:
		return "", found.Preferences
	case granted:
		return token, nil
	}
	return "", nil
}
