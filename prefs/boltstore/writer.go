package boltstore

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"
)

// Bounds of what waits and of what goes into one transaction. The bytes bound
// how long those who queue up behind a batch of the largest records wait.
const (
	maxQueue      = 256
	maxBatch      = 256
	maxBatchBytes = 8 << 20
)

// write is one write on its way through the writer.
type write struct {
	ctx   context.Context // of the caller; a write that nobody waits for is not made
	bytes int
	// apply makes the write in a transaction and tells whether it changed
	// anything. With an error but no change it is this write alone that is
	// refused; an error after a change fails the whole transaction.
	apply func(tx *bbolt.Tx) (changed bool, err error)
	done  chan error // takes one answer without blocking
}

// write has the writer make a write, of about so many bytes, and waits until it
// is durable.
func (s *Store) write(ctx context.Context, bytes int, apply func(*bbolt.Tx) (bool, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{ctx: ctx, bytes: bytes, apply: apply, done: make(chan error, 1)}
	select {
	case <-s.closing: // asked by itself first: a select picks at random
		return ErrClosed
	default:
	}
	select {
	case s.queue <- w:
	case <-s.closing:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("boltstore: not stored, too many writes are waiting: %w", ctx.Err())
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("boltstore: it is not known whether it was stored: %w", ctx.Err())
	case <-s.stopped:
	}
	// The writer may have answered just before it stopped. If it has not, the
	// write came into the queue after the writer had emptied it.
	select {
	case err := <-w.done:
		return err
	default:
		return ErrClosed
	}
}

// writeAll makes writes until the store closes, and then those that are still
// queued.
func (s *Store) writeAll() {
	defer close(s.stopped)
	for {
		select {
		case w := <-s.queue:
			s.writeBatch(w)
			continue
		case <-s.closing:
		}
		select {
		case w := <-s.queue:
			s.writeBatch(w)
		default:
			return
		}
	}
}

// writeBatch makes a write and whatever has queued up behind it in one
// transaction, and answers all of them once it is durable.
func (s *Store) writeBatch(first *write) {
	tx, err := s.db.Begin(true)
	if err != nil {
		first.done <- fmt.Errorf("boltstore: %w", err)
		return
	}
	batch, answers, changed, err := s.applyAll(tx, first)
	switch {
	case err != nil:
		err = fmt.Errorf("boltstore: not stored: %w", rollback(tx, err))
	case changed || s.unsure.Load():
		if err = tx.Commit(); err != nil {
			err = fmt.Errorf("boltstore: it is not known whether it was stored: %w", err)
		}
		s.unsure.Store(err != nil)
	default:
		err = rollback(tx, nil)
	}
	for i, w := range batch {
		// What was judged by a state that did not last was not judged.
		if err != nil {
			answers[i] = err
		}
		w.done <- answers[i]
	}
}

// applyAll applies a write and those queued behind it, within the bounds of one
// transaction, and returns the answer to each. Its error is of them all.
func (s *Store) applyAll(tx *bbolt.Tx, first *write) (batch []*write, answers []error, changed bool, err error) {
	bytes := 0
	for w := first; w != nil; w = s.next(len(batch), bytes) {
		batch = append(batch, w)
		if gone := w.ctx.Err(); gone != nil {
			answers = append(answers, fmt.Errorf("boltstore: not stored: %w", gone))
			continue
		}
		did, refusal := w.apply(tx)
		answers = append(answers, refusal)
		if did && refusal != nil {
			return batch, answers, false, refusal
		}
		changed = changed || did
		bytes += w.bytes
	}
	return batch, answers, changed, nil
}

// next takes a write from the queue if there is one and the batch has room.
func (s *Store) next(writes, bytes int) *write {
	if writes >= maxBatch || bytes >= maxBatchBytes {
		return nil
	}
	select {
	case w := <-s.queue:
		return w
	default:
		return nil
	}
}

// rollback undoes a transaction because of err, which may be nil.
func rollback(tx *bbolt.Tx, err error) error {
	if undo := tx.Rollback(); err == nil {
		err = undo
	}
	return err
}
