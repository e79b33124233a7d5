// Package archive owns the place where snapshots of the filter are published
// and fetched: a folder or an S3 bucket, with one object per generation. It
// knows names, order and who was first; what is in a snapshot is no concern of
// its.
//
// An object is there whole or not at all, and a generation is published once:
// of builders that publish the same one at the same time, one succeeds and the
// others are told [ErrTaken], on one machine and on many. For that the folder's
// file system must have hard links, and the bucket's server must honour
// If-None-Match when an object is put and when a multipart upload is completed,
// as S3 does.
//
// What a killed builder leaves behind is never listed. In a folder a later
// Publish removes it; in a bucket it is an incomplete multipart upload, which a
// lifecycle rule of the bucket (AbortIncompleteMultipartUpload) should end.
package archive

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Why a call had no effect. Both are met in good order: look at the generations
// again.
var (
	ErrTaken = errors.New("this generation is published already") // another builder was first
	ErrGone  = errors.New("this generation is not there")         // never published, or pruned
)

const (
	// callLimit bounds what moves no snapshot: a listing, a look at one
	// object, a deletion. A caller's own deadline holds if it is shorter.
	callLimit = 30 * time.Second

	// chunk is how much of a snapshot is moved at once, in bytes, and so how
	// often the end of a context is noticed.
	chunk = 256 << 10
)

// Archive is an open archive of one namespace. It is safe for use by several
// goroutines, until it is closed.
type Archive struct {
	where  string // for errors: the folder, or the bucket and the folder in it
	names  names
	bucket *blob.Bucket
	place  place
}

// place is what a folder and a bucket do each in their own way.
type place interface {
	// list returns all objects whose keys begin with the prefix.
	list(ctx context.Context, prefix string) ([]*blob.ListObject, error)

	// readable tells whether an object is one that can be read to an end, as
	// far as that is known without reading it.
	readable(key string) error

	// publish makes what write writes the object of a key, whole or not at
	// all, or fails with ErrTaken if the key has an object.
	publish(ctx context.Context, key string, write func(io.Writer) error) error
}

// Entry is a generation that is published.
type Entry struct {
	Generation int64
	Size       int64     // bytes
	Published  time.Time // by the clock of the place, not of this process
	ETag       string    // tells two contents of a generation apart; opaque
}

// Close gives up the archive. What is published stays.
func (a *Archive) Close() error {
	if err := a.bucket.Close(); err != nil {
		return fmt.Errorf("%s: close: %w", a.where, err)
	}
	return nil
}

// Generations lists what is published, the newest first. Objects with other
// names, such as those of other namespaces, are passed over.
func (a *Archive) Generations(ctx context.Context) ([]Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	objects, err := a.place.list(ctx, a.names.prefix())
	if err == nil {
		err = ctx.Err() // a folder is listed without looking at the context
	}
	if err != nil {
		return nil, fmt.Errorf("%s: list generations: %w", a.where, err)
	}
	var entries []Entry
	for _, o := range objects {
		if generation, ok := a.names.generation(o.Key); ok && !o.IsDir {
			entries = append(entries, Entry{generation, o.Size, o.ModTime.UTC(), etag(o)})
		}
	}
	slices.SortFunc(entries, func(x, y Entry) int { return cmp.Compare(y.Generation, x.Generation) })
	return entries, nil
}

// etag tells contents apart by the server's own tag, and in a folder, which has
// none, by the time of the last write and the size.
func etag(o *blob.ListObject) string {
	var object types.Object
	if o.As(&object) {
		return aws.ToString(object.ETag)
	}
	return fmt.Sprintf("%x-%x", o.ModTime.UnixNano(), o.Size)
}

// Publish publishes what write writes as a generation, from 1 to 1<<60, or fails with
// [ErrTaken] if there is one already. Nothing is published unless write returns
// nil and the context is alive by then; write is called once at most, and not
// for a generation that is seen to be taken.
//
// An error that is not ErrTaken may, where a connection broke or the context
// ended in the last moment, come of a generation that is published all the
// same, and whole.
func (a *Archive) Publish(ctx context.Context, generation int64, write func(io.Writer) error) error {
	if generation < 1 || generation > maxGeneration {
		return fmt.Errorf("%s: publish generation %d: must be from 1 to %d", a.where, generation, int64(maxGeneration))
	}
	if err := a.publish(ctx, a.names.key(generation), write); err != nil {
		return fmt.Errorf("%s: publish generation %d: %w", a.where, generation, err)
	}
	return nil
}

func (a *Archive) publish(ctx context.Context, key string, write func(io.Writer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The place is sure about who is first, but only once all is written.
	switch _, err := attributes(ctx, a.bucket, key); {
	case err == nil:
		return ErrTaken
	case gcerrors.Code(err) != gcerrors.NotFound:
		return err
	}
	return a.place.publish(ctx, key, func(w io.Writer) error {
		buffered := bufio.NewWriterSize(whileAlive{ctx, w}, chunk)
		if err := write(buffered); err != nil {
			return err
		}
		return buffered.Flush()
	})
}

// whileAlive passes on what is written, until the context ends.
type whileAlive struct {
	ctx context.Context
	to  io.Writer
}

func (w whileAlive) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(p)
}

// Fetch copies a generation into w, or fails with [ErrGone] if it is not there.
// After any other error w may have been given a part of it.
func (a *Archive) Fetch(ctx context.Context, generation int64, w io.Writer) error {
	if err := a.fetch(ctx, a.names.key(generation), w); err != nil {
		return fmt.Errorf("%s: fetch generation %d: %w", a.where, generation, err)
	}
	return nil
}

func (a *Archive) fetch(ctx context.Context, key string, w io.Writer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := a.place.readable(key); err != nil {
		return err
	}
	r, err := a.bucket.NewReader(ctx, key, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return ErrGone
	}
	if err != nil {
		return err
	}
	// Both ends are wrapped: left to themselves they would agree to move the
	// whole in one call, which does not look at the context.
	source := struct{ io.Reader }{r}
	n, err := io.CopyBuffer(whileAlive{ctx, w}, source, make([]byte, chunk))
	if err == nil && n != r.Size() {
		err = fmt.Errorf("ended after %d of %d bytes", n, r.Size())
	}
	return errors.Join(err, r.Close())
}

// Prune deletes all but the newest keep generations; keep is 1 or more. A
// gate that is fetching one of them may be told [ErrGone], or get the whole.
func (a *Archive) Prune(ctx context.Context, keep int) error {
	if keep < 1 {
		return fmt.Errorf("%s: prune: would keep %d generations, must keep 1 at least", a.where, keep)
	}
	entries, err := a.Generations(ctx)
	if err != nil || len(entries) <= keep {
		return err
	}
	for _, e := range slices.Backward(entries[keep:]) { // the oldest first
		if err := a.remove(ctx, a.names.key(e.Generation)); err != nil {
			return fmt.Errorf("%s: delete generation %d: %w", a.where, e.Generation, err)
		}
	}
	return nil
}

// remove deletes an object. That another builder has done so is as good.
func (a *Archive) remove(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	err := a.bucket.Delete(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return err
}

// listAll lists the objects of a bucket page by page.
func listAll(ctx context.Context, bucket *blob.Bucket, prefix string) ([]*blob.ListObject, error) {
	var objects []*blob.ListObject
	// The delimiter keeps what is in folders below out of the listing.
	pages := bucket.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"})
	for {
		o, err := pages.Next(ctx)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
}

// attributes looks at one object.
func attributes(ctx context.Context, bucket *blob.Bucket, key string) (*blob.Attributes, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return bucket.Attributes(ctx, key)
}
