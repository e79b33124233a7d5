package boltstore

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// Get reads a user's record, as of the last write that was answered.
func (s *Store) Get(ctx context.Context, user sendgate.UserID) (*prefs.Record, error) {
	if err := user.Validate("user"); err != nil {
		return nil, err
	}
	record := &prefs.Record{User: user}
	err := s.view(ctx, func(tx *bbolt.Tx) (err error) {
		key := recordKey(user)
		if value := tx.Bucket(bucketRecords).Get(key); value != nil {
			record, err = decodeValue(key, value)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return record, nil
}

// GetMany reads many records, each as Get does and with an error of its own.
func (s *Store) GetMany(ctx context.Context, users []sendgate.UserID) []prefs.Found {
	found := make([]prefs.Found, len(users))
	for i, user := range users {
		found[i].Record, found[i].Err = s.Get(ctx, user)
	}
	return found
}

// Put stores a record if the stored one has the given revision, and returns
// once it is durable. A record of more than prefs.MaxRecordBytes is refused with
// sendgate.CodeRecordTooLarge, as by a store that could not hold it.
func (s *Store) Put(ctx context.Context, record *prefs.Record, ifRevision int64) error {
	if err := record.User.Validate("user"); err != nil {
		return err
	}
	value, err := encodeValue(record)
	if err != nil {
		return err
	}
	user, next := record.User, headOf(record) // the caller may change the record from now on
	return s.write(ctx, len(value), func(tx *bbolt.Tx) (bool, error) {
		records, key := tx.Bucket(bucketRecords), recordKey(user)
		stored, err := decodeHead(records.Get(key))
		if err != nil {
			return false, err
		}
		if stored.revision != ifRevision {
			return false, prefs.ErrConflict
		}
		if err := records.Put(key, value); err != nil {
			return true, err
		}
		return true, moveEntry(tx, user, stored, next)
	})
}

// moveEntry makes the pending index say of a user what the record now says.
func moveEntry(tx *bbolt.Tx, user sendgate.UserID, from, to head) error {
	index := tx.Bucket(bucketPending)
	if from.pending && (!to.pending || from.since != to.since) {
		if err := index.Delete(pendingKey(user, from.since)); err != nil {
			return err
		}
	}
	if to.pending {
		return index.Put(pendingKey(user, to.since), pendingValue(to.revision))
	}
	return nil
}
