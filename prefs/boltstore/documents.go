package boltstore

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/sendgate/sendgate/limits"
)

// ReadDocument reads a document, as of the last write that was answered.
func (s *Store) ReadDocument(ctx context.Context, name string) (d limits.Document, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) (err error) {
		d, err = decodeDocument(tx.Bucket(bucketMeta).Get(documentKey(name)))
		return err
	})
	return d, err
}

// WriteDocument stores a body if the stored document has the given revision, and
// returns once it is durable.
func (s *Store) WriteDocument(ctx context.Context, name string, body []byte, ifRevision int64) error {
	if name == "" || len(body) > limits.MaxDocumentBytes {
		return fmt.Errorf("boltstore: a document %q of %d bytes", name, len(body))
	}
	value := append(appendOrdered(nil, ifRevision+1), body...)
	return s.write(ctx, len(value), func(tx *bbolt.Tx) (bool, error) {
		meta, key := tx.Bucket(bucketMeta), documentKey(name)
		stored, err := decodeDocument(meta.Get(key))
		if err != nil {
			return false, err
		}
		if stored.Revision != ifRevision {
			return false, limits.ErrConflict
		}
		return true, meta.Put(key, value)
	})
}

// documentKey keeps documents apart from what else there is in the bucket.
func documentKey(name string) []byte { return []byte("document " + name) }

// decodeDocument reads what is stored of a document; nil is one that nobody wrote.
func decodeDocument(value []byte) (limits.Document, error) {
	if value == nil {
		return limits.Document{}, nil
	}
	if len(value) < orderedBytes || ordered(value) < 1 {
		return limits.Document{}, errCorrupt(bucketMeta, errHead)
	}
	return limits.Document{Revision: ordered(value), Body: slices.Clone(value[orderedBytes:])}, nil
}
