package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"io"

	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

const (
	contentType = "application/octet-stream"

	// attemptKey is where an object says which call of publish made it.
	attemptKey = "sendgate-attempt"

	// conflict is S3's answer to a conditional write while another write or
	// deletion of the key is under way. It does not say how that one ends.
	conflict = "ConditionalRequestConflict"
)

// errAbandoned ends an upload whose snapshot could not be written.
var errAbandoned = errors.New("the snapshot was not written to its end")

// objects is a place in a bucket.
type objects struct{ bucket *blob.Bucket }

func (o objects) list(ctx context.Context, prefix string) ([]*blob.ListObject, error) {
	return listAll(ctx, o.bucket, prefix)
}

// readable finds nothing wrong: objects of a bucket are all alike.
func (o objects) readable(string) error { return nil }

// publish uploads on the condition that the key is free. When the server
// refuses, that may be on account of this very call: the client sends a request
// again whose answer was lost. So the object is asked whose it is.
func (o objects) publish(ctx context.Context, key string, write func(io.Writer) error) error {
	attempt := rand.Text()
	written, err := o.upload(ctx, key, attempt, write)
	if err == nil || !written {
		return err
	}
	attrs, lookErr := attributes(ctx, o.bucket, key)
	switch {
	case lookErr == nil && attrs.Metadata[attemptKey] == attempt:
		return nil
	case lookErr == nil && conditionFailed(err):
		return ErrTaken
	default:
		return err
	}
}

// upload tells whether the snapshot was written to its end, and if so, how the
// upload ended.
//
// If it was not, the upload is made to fail at its source. To cancel its
// context would also keep it from being published, but then the client could
// not abort a multipart upload any more, which would stay and cost money.
func (o objects) upload(ctx context.Context, key, attempt string, write func(io.Writer) error) (written bool, err error) {
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := o.bucket.Upload(ctx, key, r, &blob.WriterOptions{
			ContentType: contentType,
			Metadata:    map[string]string{attemptKey: attempt},
			IfNotExist:  true,
		})
		_ = r.CloseWithError(err) // write must not wait for a reader any more
		ended <- err
	}()
	defer func() {
		_ = w.CloseWithError(errAbandoned) // write panicked, or else closed already
	}()
	if err = write(w); err != nil {
		// Never with the error itself: io.EOF would be a good end.
		_ = w.CloseWithError(errAbandoned)
	} else {
		_ = w.Close()
	}
	if uploadErr := <-ended; err == nil {
		return true, uploadErr
	}
	return false, err
}

// conditionFailed tells whether an upload failed for the sake of another one of
// the same key.
func conditionFailed(err error) bool {
	var answer smithy.APIError
	return gcerrors.Code(err) == gcerrors.FailedPrecondition ||
		errors.As(err, &answer) && answer.ErrorCode() == conflict
}
