package boltstore

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/sendgate/sendgate/prefs"
)

// What one read transaction of a list or a scan takes at most: enough that its
// cost is spread, little enough that it is over in milliseconds.
const (
	chunkEntries = 256
	chunkBytes   = 1 << 20
)

// Pending lists one of prefs.PendingShards shards. It never lags. A record whose
// oldest pending change becomes another one while the list is under way may come
// twice, or not at all.
func (s *Store) Pending(ctx context.Context, shard int, each func(prefs.PendingEntry) error) error {
	if shard < 0 || shard >= prefs.PendingShards {
		return fmt.Errorf("boltstore: no shard %d of %d", shard, prefs.PendingShards)
	}
	return walk(ctx, s, bucketPending, []byte{byte(shard)}, []byte{byte(shard + 1)}, decodePending, each)
}

// Scan reads one segment. A record comes once, as it was stored at some instant
// since the scan began.
func (s *Store) Scan(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
	if segment < 0 || segment >= segments {
		return fmt.Errorf("boltstore: no segment %d of %d", segment, segments)
	}
	from, to := segmentStart(segment, segments), segmentStart(segment+1, segments)
	return walk(ctx, s, bucketRecords, from, to, decodeValue, each)
}

// walk calls each for the entries of a bucket from one key, inclusive, to
// another, exclusive, nil being past all. It reads them in chunks, and calls
// each outside of any transaction. It goes on from the last key that it read,
// so that what is inserted or deleted meanwhile moves nothing.
func walk[T any](ctx context.Context, s *Store, bucket, from, to []byte, decode func(key, value []byte) (T, error), each func(T) error) error {
	for more := true; more; {
		var chunk []T
		err := s.view(ctx, func(tx *bbolt.Tx) error {
			c, size := tx.Bucket(bucket).Cursor(), 0
			key, value := c.Seek(from)
			for ; key != nil && (to == nil || bytes.Compare(key, to) < 0); key, value = c.Next() {
				if len(chunk) == chunkEntries || size >= chunkBytes {
					from = bytes.Clone(key)
					return nil
				}
				entry, err := decode(key, value)
				if err != nil {
					return err
				}
				chunk = append(chunk, entry)
				size += len(key) + len(value)
			}
			more = false
			return nil
		})
		if err != nil {
			return err
		}
		for _, entry := range chunk {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := each(entry); err != nil {
				return err
			}
		}
	}
	return nil
}
