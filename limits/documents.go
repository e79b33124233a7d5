package limits

import (
	"context"
	"errors"
)

// ErrConflict is the answer to a write whose condition did not hold.
var ErrConflict = errors.New("the document has another revision")

// MaxDocumentBytes is the longest body of a document: an item of DynamoDB
// holds 400 KB, and a change writes a whole one.
const MaxDocumentBytes = 256 << 10

// Documents is a store of a few named documents.
type Documents interface {
	// ReadDocument reads a document, strongly consistent: it sees every write
	// that was answered before. One that nobody wrote has revision 0 and no
	// body.
	ReadDocument(ctx context.Context, name string) (Document, error)
	// WriteDocument stores a body of at most MaxDocumentBytes under the revision
	// after the given one if the stored document has that one (0 if there is
	// none), and is ErrConflict otherwise. After any other error it is not known
	// whether it was stored. A name is 1 to 64 letters, digits, `/` and `-`.
	WriteDocument(ctx context.Context, name string, body []byte, ifRevision int64) error
}

// Document is a body and its revision, which begins with 1 and rises by 1.
type Document struct {
	Revision int64
	Body     []byte // the caller's to keep
}
