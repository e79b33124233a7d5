package prefs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/internal/redistest"
	"github.com/sendgate/sendgate/prefs"
)

// mute is an announcer that gets nothing through.
type mute struct{ prefs.Announcer }

func (mute) Announce(_ context.Context, states []sendgate.Announcement) []error {
	errs := make([]error, len(states))
	for i := range errs {
		errs[i] = errors.New("mute")
	}
	return errs
}

func publisher(r *rig) *feed.Publisher {
	return feed.NewPublisher(r.client, r.space, sendgate.SystemClock)
}

// TestNobodysShareIsLeftUndone has one gate of two take its share, and get
// nothing of it through: after a while it is the other one's too. The clocks of
// the two are apart, which makes no difference.
func TestNobodysShareIsLeftUndone(t *testing.T) {
	for _, apart := range []time.Duration{0, time.Hour, -time.Hour} {
		well := newRig(t)
		ill := newRigOn(t, well.client, &faultyStore{Store: well.store.Store})
		ill.pass(apart)
		ill.announceBy(t, mute{publisher(ill)})
		const users = 60
		for i := range users {
			ill.put(t, sendgate.UserID(fmt.Sprint("u", i)), "newsletter", "email", off())
		}
		logged := func() (n int) {
			for i := range users {
				changes, err := well.store.Changes(t.Context(), sendgate.UserID(fmt.Sprint("u", i)), 0, 10)
				if err != nil {
					t.Fatal(err)
				}
				n += len(changes)
			}
			return n
		}
		pass := func(d time.Duration) {
			for _, r := range []*rig{ill, well} {
				r.pass(d)
				_ = r.sweeper.Sweep(t.Context())
			}
		}
		pass(2 * time.Second) // both say that they are there
		pass(0)
		pass(9 * time.Second)
		if n := logged(); n == 0 || n == users {
			t.Errorf("%v apart: within 10 s the gate that is well has carried on %d of %d", apart, n, users)
		}
		pass(2 * time.Second)
		if n := logged(); n != users {
			t.Errorf("%v apart: after 10 s, %d of %d have got through", apart, n, users)
		}
		for range 3 {
			pass(30 * time.Second)
		}
		if well.backlog.Records != 0 {
			t.Errorf("%v apart: nobody clears %d records", apart, well.backlog.Records)
		}
	}
}

// TestACallerWhoHasGoneAway has the caller of an edit go away as soon as it is
// durable, while Redis' clock is being read: the change is carried on.
func TestACallerWhoHasGoneAway(t *testing.T) {
	r := newRig(t)
	gone := make(chan struct{})
	r.announceBy(t, slowClock{publisher(r), gone})
	ctx, goAway := context.WithCancel(t.Context())
	r.store.set(func(s *faultyStore) {
		s.afterPut = func(_ *prefs.Record, err error) error {
			goAway()
			close(gone)
			return err
		}
	})
	edit := prefs.Edit{Settings: []prefs.SettingEdit{{Topic: "newsletter", Channel: "email", Enabled: off()}}}
	if _, err := r.service.Update(ctx, "u", edit, nil, prefs.Meta{}); err != nil {
		t.Fatal(err)
	}
	if n := r.streamLength(t, "u"); n != 1 {
		t.Errorf("%d announcements", n)
	}
}

// slowClock is an announcer whose clock answers only after something.
type slowClock struct {
	prefs.Announcer
	after <-chan struct{}
}

func (s slowClock) Clock(ctx context.Context, user sendgate.UserID) (time.Time, error) {
	select {
	case <-s.after:
		return s.Announcer.Clock(ctx, user)
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// TestManyPendingChangesKeepNobodyWaiting has one record with very many pending
// changes that nobody has logged, and a slow log: others are cleared beside it,
// and it is in the end.
func TestManyPendingChangesKeepNobodyWaiting(t *testing.T) {
	const many, others = 1000, 30
	r := newRig(t)
	fat := &prefs.Record{User: "fat"}
	for revision := range int64(many) {
		fat.Revision = revision + 1
		fat.Pending = append(fat.Pending, prefs.Change{ID: fmt.Sprint("c", revision), Revision: revision + 1, At: r.clock()})
	}
	if err := r.store.Put(t.Context(), fat, 0); err != nil {
		t.Fatal(err)
	}
	shard, mates := prefs.PendingShard("fat"), []sendgate.UserID(nil)
	for i := 0; len(mates) < others; i++ {
		if user := sendgate.UserID(fmt.Sprint("u", i)); prefs.PendingShard(user) == shard {
			mates = append(mates, user)
			r.put(t, user, "newsletter", "email", off())
		}
	}
	r.store.set(func(s *faultyStore) {
		s.append = func(prefs.Change) error {
			<-time.After(30 * time.Millisecond) // takes longer than a record has, with so many
			return nil
		}
	})
	for range 8 {
		r.pass(30 * time.Second)
		_ = r.sweeper.Sweep(t.Context())
		left := 0
		for _, user := range mates {
			left += pending(t, r, user)
		}
		if left+pending(t, r, "fat") == 0 {
			return
		}
	}
	t.Errorf("%d changes of the one with many are pending yet", pending(t, r, "fat"))
}

// TestAMasterThatHangsIsNobodyElses has one master of a cluster hang while people
// of all masters change their minds: those of the others get through at once.
func TestAMasterThatHangsIsNobodyElses(t *testing.T) {
	cluster := redistest.StartCluster(t)
	base := newRig(t)
	r := newRigOn(t, cluster.Client(), base.store)
	var onOthers []sendgate.UserID
	for i := range 60 { // every clock is known
		user := sendgate.UserID(fmt.Sprint("u", i))
		r.put(t, user, "newsletter", "email", on())
		if r.slot(t, user) > 16384/3 {
			onOthers = append(onOthers, user)
		}
	}
	if err := cluster.Masters()[0].Client().Do(t.Context(), "CLIENT", "PAUSE", time.Minute.Milliseconds(), "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{})
	for i := range 60 {
		go func() {
			defer func() { changed <- struct{}{} }()
			r.put(t, sendgate.UserID(fmt.Sprint("u", i)), "newsletter", "email", off())
		}()
	}
	for range 60 {
		<-changed
	}
	for _, user := range onOthers {
		if logged, err := r.store.Changes(t.Context(), user, 0, 10); err != nil || len(logged) != 2 {
			t.Errorf("%s: %d changes in the log, %v", user, len(logged), err)
		}
	}
}

// slot is the cluster's slot of a user's record.
func (r *rig) slot(t *testing.T, user sendgate.UserID) int64 {
	t.Helper()
	slot, err := r.client.ClusterKeySlot(t.Context(), r.space.Record(user)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return slot
}
