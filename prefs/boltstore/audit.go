package boltstore

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// AppendChange stores a change, and returns once it is durable. The first one
// of a user and revision stays.
func (s *Store) AppendChange(ctx context.Context, user sendgate.UserID, change prefs.Change) error {
	if err := user.Validate("user"); err != nil {
		return err
	}
	data, err := prefs.EncodeChange(change)
	if err != nil {
		return err
	}
	key := changeKey(user, change.Revision)
	return s.write(ctx, len(data), func(tx *bbolt.Tx) (bool, error) {
		changes := tx.Bucket(bucketChanges)
		if changes.Get(key) != nil {
			return false, nil
		}
		return true, changes.Put(key, data)
	})
}

// Changes lists a user's changes as of the last append that was answered. A
// limit below 1 lists none.
func (s *Store) Changes(ctx context.Context, user sendgate.UserID, after int64, limit int) ([]prefs.Change, error) {
	if err := user.Validate("user"); err != nil {
		return nil, err
	}
	var changes []prefs.Change
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		first, ok := firstChangeKey(user, after)
		if !ok {
			return nil
		}
		prefix := changePrefix(user)
		c := tx.Bucket(bucketChanges).Cursor()
		for key, data := c.Seek(first); len(changes) < limit && bytes.HasPrefix(key, prefix); key, data = c.Next() {
			change, err := prefs.DecodeChange(data)
			if err != nil {
				return errCorrupt(bucketChanges, errForm)
			}
			if !bytes.Equal(key, changeKey(user, change.Revision)) {
				return errCorrupt(bucketChanges, errOther)
			}
			changes = append(changes, change)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}
