// Package backend opens what a configuration names: the store, Redis, and the
// archive of filters. The programs share it, so that they mean the same by the
// same file, and every error names the member that it comes from.
package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/config"
	"github.com/sendgate/sendgate/prefs"
	"github.com/sendgate/sendgate/prefs/boltstore"
	"github.com/sendgate/sendgate/prefs/dynamostore"
	"github.com/sendgate/sendgate/redisconn"
)

// startLimit is how long all of it may take to open. Tables that are being made
// take most of it; what is asked and does not answer is given up much earlier.
const startLimit = 2 * time.Minute

// Backend is what a program works on. Close ends it.
type Backend struct {
	Store     prefs.Store
	Redis     redis.UniversalClient
	CapsRedis redis.UniversalClient // nil: the same Redis
	Archive   *archive.Archive      // nil: there is no filter

	opened []io.Closer // in the order they were opened in
}

// Open opens all that a configuration names, within two minutes. It waits for
// the tables of a store, which must be there or be made, but not for Redis nor
// for a bucket: those may come later. If a part of it fails, what was opened
// before is closed again.
func Open(ctx context.Context, c *config.Config) (*Backend, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	b := &Backend{}
	if err := b.open(ctx, c); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Backend) open(ctx context.Context, c *config.Config) (err error) {
	if b.Store, err = openStore(ctx, c.Store); err != nil {
		return err
	}
	b.opened = append(b.opened, b.Store)
	if b.Redis, err = redisconn.Open(c.Redis); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	b.opened = append(b.opened, b.Redis)
	if !c.CapsBesideRecords() {
		if b.CapsRedis, err = redisconn.Open(c.CapsRedis); err != nil {
			return fmt.Errorf("caps_redis: %w", err)
		}
		b.opened = append(b.opened, b.CapsRedis)
	}
	if c.Filter.URL != "" {
		if b.Archive, err = archive.Open(ctx, c.Filter.URL, c.Namespace); err != nil {
			return fmt.Errorf("filter.url: %w", err)
		}
		b.opened = append(b.opened, b.Archive)
	}
	return nil
}

func openStore(ctx context.Context, c config.Store) (prefs.Store, error) {
	if c.DynamoDB == nil {
		store, err := boltstore.Open(c.Bbolt.Path)
		if err != nil {
			return nil, fmt.Errorf("store.bbolt: %w", err)
		}
		return store, nil
	}
	sdk, err := dynamostore.LoadConfig(ctx, c.DynamoDB.Region, c.DynamoDB.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("store.dynamodb: %w", err)
	}
	store, err := dynamostore.Open(ctx, dynamostore.Options{
		Config: sdk, TablePrefix: c.DynamoDB.TablePrefix, Create: c.DynamoDB.Create, ScanUnitsPerSecond: c.DynamoDB.ScanUnits,
	})
	if err != nil {
		return nil, fmt.Errorf("store.dynamodb: %w", err)
	}
	return store, nil
}

// Close closes all of it, the last opened first. Nothing may be using it any
// more. A second call does nothing.
func (b *Backend) Close() error {
	var errs []error
	for _, part := range slices.Backward(b.opened) {
		errs = append(errs, part.Close())
	}
	b.opened = nil
	return errors.Join(errs...)
}
