package boltstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// stall keeps the writer from beginning a transaction until the function that
// it returns is called: the disk is busy.
func stall(t *testing.T, s *Store) (release func()) {
	t.Helper()
	tx, err := s.db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release) // before the store's own cleanup, which waits for the writer
	return release
}

// queued waits until so many writes are queued behind the one that the writer
// has in hand.
func queued(t *testing.T, s *Store, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for len(s.queue) != n {
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("%d writes are queued, want %d", len(s.queue), n)
		}
	}
}

// transactions is how many the file has seen.
func transactions(t testing.TB, s *Store) (id int) {
	t.Helper()
	if err := s.db.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return id
}

// puts stores a user's next revision, and sends the answer.
func puts(ctx context.Context, s *Store, user sendgate.UserID, revision int64) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- s.Put(ctx, record(user, revision), revision-1) }()
	return answer
}

func TestGroupCommit(t *testing.T) {
	s := openAt(t, newPath(t))
	before := transactions(t, s)
	release := stall(t, s)
	first := puts(t.Context(), s, "first", 1)
	var answers []<-chan error
	// Those who queue up are judged in their order: one user's three writes
	// follow upon each other, and a fourth one comes too late.
	for i, revision := range []int64{1, 2, 3, 3} {
		answers = append(answers, puts(t.Context(), s, "u", revision))
		queued(t, s, i+1) // and one is in the writer's hand
	}
	for i := range 60 {
		answers = append(answers, puts(t.Context(), s, sendgate.UserID(fmt.Sprint("user-", i)), 1))
	}
	queued(t, s, 64)
	release()
	if err := <-first; err != nil {
		t.Error(err)
	}
	for i, answer := range answers {
		if err := <-answer; (i == 3) != errors.Is(err, prefs.ErrConflict) || (i != 3 && err != nil) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if n := transactions(t, s) - before; n != 1 {
		t.Errorf("65 writes that were queued together took %d transactions", n)
	}
	if r, err := s.Get(t.Context(), "u"); err != nil || r.Revision != 3 {
		t.Errorf("after three writes: %v, %v", r, err)
	}
	// Refusals alone cost no transaction.
	if err := s.Put(t.Context(), record("u", 3), 2); !errors.Is(err, prefs.ErrConflict) {
		t.Error(err)
	}
	if n := transactions(t, s) - before; n != 1 {
		t.Errorf("a conflict made a transaction of its own")
	}
}

func TestContextEndsWhileQueued(t *testing.T) {
	s := openAt(t, newPath(t))
	release := stall(t, s)
	inHand := puts(t.Context(), s, "in hand", 1)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := puts(ctx, s, "waiting", 1)
	queued(t, s, 1)
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not known whether it was stored") {
		t.Errorf("a write whose context ended while it was queued: %v", err)
	}
	release()
	if err := <-inHand; err != nil && !errors.Is(err, context.Canceled) { // either may be the one that the writer had in hand
		t.Error(err)
	}
	if err := s.Put(t.Context(), record("after", 1), 0); err != nil {
		t.Error(err)
	}
	if r, err := s.Get(t.Context(), "waiting"); err != nil || r.Revision != 0 {
		t.Errorf("a write that nobody waited for was made: %v, %v", r, err)
	}
}

func TestQueueIsBounded(t *testing.T) {
	s := openAt(t, newPath(t))
	release := stall(t, s)
	var answers []<-chan error
	for i := range maxQueue + 1 {
		answers = append(answers, puts(t.Context(), s, sendgate.UserID(fmt.Sprint("user-", i)), 1))
	}
	queued(t, s, maxQueue)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Put(ctx, record("one too many", 1), 0); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "too many") {
		t.Errorf("a write past the bound of the queue: %v", err)
	}
	release()
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
}

func TestCloseAnswersWhatIsQueued(t *testing.T) {
	path := newPath(t)
	s := openAt(t, path)
	release := stall(t, s)
	const writes = 100
	var answers []<-chan error
	for i := range writes {
		answers = append(answers, puts(t.Context(), s, sendgate.UserID(fmt.Sprint("user-", i)), 1))
	}
	queued(t, s, writes-1)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.closing
	if err := s.Put(t.Context(), record("late", 1), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("a write after Close has begun: %v", err)
	}
	release()
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := countPending(t, openAt(t, path)); n != writes {
		t.Errorf("%d of %d writes that were queued when it closed are stored", n, writes)
	}
}

// Writers and Close at the same time: every write is answered, and what was
// answered without an error is stored.
func TestCloseUnderLoad(t *testing.T) {
	for range 5 {
		path := newPath(t)
		s := openAt(t, path)
		var all sync.WaitGroup
		stored := make([]int64, 8)
		started := make(chan struct{}, len(stored))
		for i := range stored {
			all.Go(func() {
				user := sendgate.UserID(fmt.Sprint("user-", i))
				for {
					err := s.Put(t.Context(), record(user, stored[i]+1), stored[i])
					if errors.Is(err, ErrClosed) {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
					if stored[i]++; stored[i] == 1 {
						started <- struct{}{}
					}
				}
			})
		}
		for range stored {
			<-started
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
		s = openAt(t, path)
		for i, revision := range stored {
			user := sendgate.UserID(fmt.Sprint("user-", i))
			if r, err := s.Get(t.Context(), user); err != nil || r.Revision != revision {
				t.Errorf("%q was answered %d writes; stored is %v, %v", user, revision, r, err)
			}
		}
	}
}

// A transaction that cannot be committed is nobody's success and nobody's
// conflict, and the store works on once the disk does.
func TestCommitFails(t *testing.T) {
	s := openAt(t, newPath(t))
	ctx := t.Context()
	if err := s.Put(ctx, record("u", 1), 0); err != nil {
		t.Fatal(err)
	}
	release := stall(t, s)
	s.db.MaxSize = 1 // the disk is full
	big := record("u", 2)
	big.Pending[0].Reason = strings.Repeat("x", 300<<10)
	fails := make(chan error, 1)
	go func() { fails <- s.Put(ctx, big, 1) }()
	conflicts := puts(ctx, s, "u", 9)
	queued(t, s, 1)
	release()
	for _, answer := range []<-chan error{fails, conflicts} {
		if err := <-answer; err == nil || errors.Is(err, prefs.ErrConflict) || !strings.Contains(err.Error(), "not known whether it was stored") {
			t.Errorf("a write in a transaction for which there was no room: %v", err)
		}
	}
	if !s.unsure.Load() {
		t.Error("reads go on as if nothing had happened")
	}
	if err := s.write(ctx, 0, func(*bbolt.Tx) (bool, error) { s.db.MaxSize = 0; return false, nil }); err != nil {
		t.Error(err)
	}
	if r, err := s.Get(ctx, "u"); err != nil || r.Revision != 1 {
		t.Errorf("after a failed write: %v, %v", r, err)
	}
	if err := s.Put(ctx, big, 1); err != nil {
		t.Errorf("the write again: %v", err)
	}
}

func TestReadsWaitForACommitAfterAFailedOne(t *testing.T) {
	s := openAt(t, newPath(t))
	before := transactions(t, s)
	s.unsure.Store(true)
	if _, err := s.Get(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	if n := transactions(t, s) - before; n != 1 || s.unsure.Load() {
		t.Errorf("the read made %d transactions; unsure: %v", n, s.unsure.Load())
	}
	if _, err := s.Get(t.Context(), "u"); err != nil || transactions(t, s)-before != 1 {
		t.Errorf("a read after that: %v, or a transaction", err)
	}
}

// An error after a change fails the whole transaction: none of it is stored.
func TestErrorAfterAChange(t *testing.T) {
	s := openAt(t, newPath(t))
	release := stall(t, s)
	good := puts(t.Context(), s, "good", 1)
	broken := errors.New("broken")
	bad := make(chan error, 1)
	go func() {
		bad <- s.write(t.Context(), 0, func(tx *bbolt.Tx) (bool, error) {
			return true, errors.Join(broken, tx.Bucket(bucketRecords).Put([]byte("half"), []byte("written")))
		})
	}()
	queued(t, s, 1)
	release()
	if err := <-bad; !errors.Is(err, broken) {
		t.Errorf("the write that broke: %v", err)
	}
	err := <-good // the one that the writer had in hand, or in the same transaction
	r, getErr := s.Get(t.Context(), "good")
	if getErr != nil || (err == nil) != (r.Revision == 1) {
		t.Errorf("the write before it was answered %v, and stored is %v, %v", err, r, getErr)
	}
	if err := s.Scan(t.Context(), 0, 1, func(*prefs.Record) error { return nil }); err != nil {
		t.Errorf("half of it was stored: %v", err)
	}
}
