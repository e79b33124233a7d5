package bloom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
)

const (
	modelSeeds = 300
	modelSteps = 600
	modelUsers = 40
	usedShards = 8 // that the users of a world are spread over
)

// world is a model of an installation with one partition, as a gate sees it.
// Everything in it happens in one goroutine, in an order that a seed decides;
// the overlay, what is in use, and the keeper that decides on it are real.
type world struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand
	now  time.Time

	users     []sendgate.UserID
	newest    []int64 // the revision in the store, by user
	late      []int   // users with a change that is not announced yet
	stream    []streamed
	begins    int // the stream's entries before have been trimmed
	heard     int // the follower has taken the entries before
	away      bool
	acks      []ack
	scan      *scan
	snapshots []*scan // by generation, from 1
	replaying bool

	overlay *Overlay
	live    *Live
	keeper  *Keeper
	seen    map[string]int // how often the model got into what it is about
}

// streamed is an entry of the stream; the n-th, from 1, has the offset n.
type streamed struct {
	mark     bool
	user     int
	revision int64
}

// ack is a record that this gate has written, or read in a sweep, and that its
// overlay has not been told of yet.
type ack struct {
	consent        sendgate.Consent
	epoch, dropped int64
}

// scan is a rebuild: the offset of its mark, and the revisions read since.
type scan struct {
	mark      int
	revisions []int64
}

func newWorld(t *testing.T, seed uint64, seen map[string]int) *world {
	w := &world{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), newest: make([]int64, modelUsers), seen: seen,
		overlay: NewOverlay(shardCount * (1 + int(seed%5))), // of the five, the last one has room for all
	}
	w.overlay.SetNow(func() time.Time { return w.now })
	w.live = NewLive(w.overlay, nil)
	w.keeper = NewKeeper(KeeperOptions{Live: w.live, Replayer: w, Log: slog.New(slog.DiscardHandler), Loaded: func(LoadResult) { w.seen["in use"]++ }})
	// Who shares a shard decides who is dropped, and the overlay hashes
	// differently every time: so a user is named after a shard, not the reverse.
	for name := 0; len(w.users) < modelUsers; name++ {
		user := sendgate.UserID(fmt.Sprint("u", name))
		if w.overlay.shard(user) == &w.overlay.shards[len(w.users)%usedShards] {
			w.users = append(w.users, user)
		}
	}
	for range 30 { // before this gate began
		w.change()
	}
	w.land()
	w.heard, w.away = len(w.stream), true
	w.overlay.Gap() // as a follower's first look is
	return w
}

// step lets one thing happen, and looks at what is known then.
func (w *world) step() {
	switch w.r.IntN(16) {
	case 0, 1, 2, 3:
		w.change()
	case 4:
		w.announceLate()
	case 5, 6:
		w.hear()
	case 7:
		if w.r.IntN(3) == 0 { // the connection is lost
			w.overlay.SetLive(false)
			w.away = true
		}
	case 8:
		if w.r.IntN(1+int(w.seed%8)) == 0 { // as after an entry that is not understood
			w.overlay.Gap()
			w.seen["gap"]++
		}
	case 9:
		w.land() // a call does not last for minutes
		w.now = w.now.Add(time.Duration(w.r.IntN(15)) * time.Minute)
	case 10:
		w.trim()
	case 11:
		w.rebuild()
	case 12, 13:
		w.round()
	case 14:
		w.sweep()
	case 15:
		w.land()
	}
	w.look()
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

func (w *world) consent(user int) sendgate.Consent {
	return sendgate.Consent{User: w.users[user], Revision: w.newest[user]}
}

// change makes a change, at this gate or at another one, and announces it,
// often at once.
func (w *world) change() {
	user, epoch := w.r.IntN(modelUsers), w.overlay.Epoch()
	w.newest[user]++
	if w.r.IntN(2) == 0 {
		w.acks = append(w.acks, ack{w.consent(user), epoch, w.overlay.Dropped()})
	}
	if w.r.IntN(8) == 0 {
		w.late = append(w.late, user)
	} else {
		w.announce(user)
	}
	if w.r.IntN(2) == 0 {
		w.land()
	}
}

func (w *world) announce(user int) {
	w.stream = append(w.stream, streamed{user: user, revision: w.newest[user]})
}

func (w *world) announceLate() {
	for _, user := range w.late {
		w.announce(user)
	}
	w.late = nil
}

// sweep reads a record.
func (w *world) sweep() {
	if user := w.r.IntN(modelUsers); w.newest[user] > 0 {
		w.acks = append(w.acks, ack{w.consent(user), w.overlay.Epoch(), w.overlay.Dropped()})
	}
}

// land tells the overlay of what was written and read here. Nobody is dropped
// between: for a newer revision to come and go meanwhile, an overlay would have
// to be filled anew within one call.
func (w *world) land() {
	for _, a := range w.acks {
		if w.overlay.Dropped() == a.dropped {
			w.overlay.ApplySince(a.consent, a.epoch)
		}
	}
	w.acks = nil
}

// hear lets the follower take what has come to it: all, or a part. Where the
// stream does not hold its cursor any more it reads what there is, and says
// that it is away until it has.
func (w *world) hear() {
	if w.heard < w.begins {
		w.overlay.SetLive(false)
		w.overlay.Gap()
		w.heard, w.away = w.begins, true
		w.seen["trimmed"]++
	}
	to := len(w.stream)
	if w.r.IntN(4) == 0 {
		to = w.heard + w.r.IntN(to-w.heard+1)
	}
	for ; w.heard < to; w.heard++ {
		if e := w.stream[w.heard]; !e.mark {
			w.overlay.Apply(sendgate.Consent{User: w.users[e.user], Revision: e.revision}, place(w.heard))
		}
	}
	if w.away && w.heard == len(w.stream) {
		w.away = false
		w.overlay.SetLive(true)
	}
}

// trim drops the stream's beginning, and now and then nearly all of it.
func (w *world) trim() {
	switch n := len(w.stream) - w.begins; {
	case w.r.IntN(20) == 0:
		w.begins = len(w.stream) - w.r.IntN(5)
	case n > 60:
		w.begins += w.r.IntN(n / 2)
	}
}

func place(entry int) sendgate.Place {
	return sendgate.Place{Offset: sendgate.Offset{Millis: uint64(entry + 1)}}
}

// rebuild marks the stream, or reads some more records, or publishes.
func (w *world) rebuild() {
	if w.scan == nil {
		w.stream = append(w.stream, streamed{mark: true})
		w.scan = &scan{mark: len(w.stream)}
	}
	at := len(w.scan.revisions)
	w.scan.revisions = append(w.scan.revisions, w.newest[at:min(at+10, modelUsers)]...)
	if len(w.scan.revisions) == modelUsers {
		w.snapshots, w.scan = append(w.snapshots, w.scan), nil
	}
}

// round is one of the keeper, who has loaded what was published. What can be
// relied on it may give up only for something that can be, too.
func (w *world) round() {
	if w.replaying {
		return
	}
	if n := len(w.snapshots); n > 0 {
		position := sendgate.Position{Token: "t", Offsets: []sendgate.Offset{{Millis: uint64(w.snapshots[n-1].mark)}}}
		s := &Snapshot{header: Header{Generation: int64(n), Position: position}}
		w.keeper.take(loaded{of: Published{Generation: int64(n)}, snapshot: s})
	}
	before, wasCurrent := w.live.standing.Load(), w.live.Current()
	w.keeper.round(w.t.Context(), false)
	after := w.live.standing.Load()
	switch good := before != nil && before.covered && !before.watch.lost.Load() && before.epoch == w.overlay.Epoch(); {
	case after != before && good && !after.covered:
		w.failf("generation %d was given up for %d, which is not covered", before.snapshot.header.Generation, after.snapshot.header.Generation)
	case w.keeper.candidate != nil:
		w.seen["waits"]++
	case after != before && before != nil && before.snapshot == after.snapshot && !wasCurrent:
		w.seen["recovered"]++
	}
}

// Replay is the Replayer's: it reads the stream while things go on, and may
// fail anywhere.
func (w *world) Replay(_ context.Context, from sendgate.Position, apply func(sendgate.Consent, sendgate.Place)) error {
	w.replaying = true
	defer func() { w.replaying = false }()
	begin, fails := int(from.Offsets[0].Millis), -1
	if w.r.IntN(4) == 0 {
		fails = begin + w.r.IntN(30)
	}
	for i := begin; ; i++ {
		switch {
		case i-1 < w.begins: // what was read last
			return errors.New("the position is lost")
		case i == fails:
			w.seen["failed replay"]++
			return errors.New("no answer in time")
		case i == len(w.stream):
			return nil
		}
		if e := w.stream[i]; !e.mark {
			apply(sendgate.Consent{User: w.users[e.user], Revision: e.revision}, place(i))
		}
		if w.r.IntN(4) == 0 {
			w.step()
		}
	}
}

// look compares what is known with what is true, once all that was announced
// has arrived.
func (w *world) look() {
	if w.heard < len(w.stream) || len(w.late) > 0 || !w.overlay.Live() {
		return
	}
	current, generation := w.live.Current(), w.keeper.generation()
	for user, newest := range w.newest {
		c, exact, known := w.overlay.Consent(w.users[user])
		switch {
		case known && exact && c.Revision != newest:
			w.failf("user %d is known exactly at %d, not %d (replaying %t, current %t)", user, c.Revision, newest, w.replaying, current)
		case !known && current && w.snapshots[generation-1].revisions[user] != newest:
			w.failf("user %d is not in the overlay, and generation %d has %d, not %d", user, generation, w.snapshots[generation-1].revisions[user], newest)
		case exact:
			w.seen["exact"]++
		case known:
			w.seen["hint"]++
		}
	}
	if current {
		w.seen["current"]++
	}
}

// TestTheModel lets everything happen in any order. Once all has arrived,
// nobody is known exactly at a revision that is not the newest; and while the
// filter can be relied on, whoever is not in the overlay is in it at the newest.
func TestTheModel(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(modelSeeds) {
		w := newWorld(t, seed, seen)
		for range modelSteps {
			w.step()
		}
		seen["dropped"] += int(w.overlay.Dropped())
	}
	t.Log(seen)
	for _, what := range []string{"current", "dropped", "exact", "failed replay", "gap", "hint", "in use", "recovered", "trimmed", "waits"} {
		if seen[what] < 100 {
			t.Errorf("%s: seen %d times, which shows little", what, seen[what])
		}
	}
}
