package api

import (
	"context"
	"iter"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendgate/sendgate"
)

// maxBatch is how many items one batch may have.
const maxBatch = 1000

// batchBody is a batch whose items are not decoded yet: one that is wrong in
// itself fails alone.
type batchBody struct {
	Checks  member[rawItems] `json:"checks"`
	Reserve optional[bool]   `json:"reserve"`
	Take    optional[int]    `json:"take"`
}

// rawItems are the items of an array, known to be JSON and no more, as where
// they stand in the body.
type rawItems []span

// span is a part of a body, from one byte to before another.
type span struct{ from, to int64 }

// decodeItems reads a body whose items are read one by one afterwards. A member
// given twice within an item, or half a surrogate pair escaped in it, is the
// item's own mistake; a member of the body given twice is refused by the member.
// Bytes that are not UTF-8 make no JSON at all.
func decodeItems(data []byte, into any) error {
	return decode(data, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(utf8.Valid(data)))
}

// UnmarshalJSONFrom reads an array of at most maxBatch items.
func (items *rawItems) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != '[' {
		if _, err := d.ReadValue(); err != nil {
			return err
		}
		return sendgate.Errorf(sendgate.CodeMalformedJSON, fieldOf(d.StackPointer()), "has to be an array")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		item, err := d.ReadValue()
		if err != nil {
			return err
		}
		if len(*items) == maxBatch {
			return sendgate.Errorf(sendgate.CodeBatchTooLarge, fieldOf(d.StackPointer().Parent()), "has at most %d items", maxBatch)
		}
		end := d.InputOffset()
		*items = append(*items, span{end - int64(len(item)), end})
	}
	_, err := d.ReadToken()
	return err
}

// batch is a list of checks, each with the error that stands in its place.
type batch struct {
	checks []sendgate.Check
	errs   []error
	mode   sendgate.Mode
	take   int
}

// parseBatch reads a batch. The error is of the body as a whole.
func parseBatch(data []byte) (*batch, error) {
	var body batchBody
	if err := decodeItems(data, &body); err != nil {
		return nil, err
	}
	items := body.Checks.value
	if len(items) == 0 {
		return nil, sendgate.Errorf(sendgate.CodeMissingField, "checks", "at least one check is required")
	}
	b := &batch{checks: make([]sendgate.Check, len(items)), errs: make([]error, len(items))}
	if !body.Reserve.or(true) {
		b.mode = sendgate.Look
	}
	for i, item := range items {
		b.checks[i], b.errs[i] = parseCheck(data[item.from:item.to])
	}
	if body.Take.value != nil {
		b.take = *body.Take.value
		return b, b.takeFault()
	}
	return b, nil
}

// takeFault says why a batch cannot be taken from.
func (b *batch) takeFault() error {
	switch {
	case b.take < 1 || b.take > maxBatch:
		return sendgate.Errorf(sendgate.CodeInvalidField, "take", "has to be from 1 to %d", maxBatch)
	case b.mode == sendgate.Look:
		return sendgate.Errorf(sendgate.CodeInvalidField, "take", "says how many slots are taken, and reserve: false takes none")
	}
	var user sendgate.UserID
	for i, err := range b.errs {
		if err != nil {
			continue
		}
		if user == "" {
			user = b.checks[i].User
		}
		if b.checks[i].User != user {
			return sendgate.Errorf(sendgate.CodeInvalidField, "take", "is for the checks of one user, and there are several")
		}
	}
	return nil
}

// decided answers the checks that can be asked, in order, and puts what was
// wrong with the others in their places. It hands out the answer in parts, as
// they are decided, and says which is the last one. A part is written over the
// one before it, and the batch's checks move up over those that were wrong.
func (s *Server) decided(ctx context.Context, b *batch, text []byte) iter.Seq2[[]byte, bool] {
	asked := b.checks[:0]
	for i, err := range b.errs {
		if err == nil {
			asked = append(asked, b.checks[i])
		}
	}
	return func(yield func([]byte, bool) bool) {
		text, next, left := append(text, `{"decisions":[`...), 0, len(asked)
		for results := range s.o.Gate.DecideParts(ctx, asked, b.mode, b.take) {
			for i := range results {
				text, next = b.appendWrong(text, next)
				text, next = appendResult(appendComma(text, next), &results[i]), next+1
			}
			if left -= len(results); left == 0 {
				break
			}
			if !yield(text, false) {
				return
			}
			text = text[:0]
		}
		text, _ = b.appendWrong(text, next)
		yield(append(text, "]}\n"...), true)
	}
}

// appendWrong writes the items from the i-th on that were wrong, up to the next
// one that was not, and says which that is.
func (b *batch) appendWrong(text []byte, i int) ([]byte, int) {
	for ; i < len(b.errs) && b.errs[i] != nil; i++ {
		text = appendItemError(appendComma(text, i), b.errs[i])
	}
	return text, i
}

func appendResult(text []byte, r *sendgate.Result) []byte {
	if r.Err != nil {
		return appendItemError(text, r.Err)
	}
	return appendDecision(text, &r.Decision)
}

// itemError stands in the place of an item that was wrong.
type itemError struct {
	Error fault `json:"error"`
}

func (s *Server) checkBatch(c *call) (reply, error) {
	data, err := c.body(maxBatchBytes)
	if err != nil {
		return reply{}, err
	}
	b, err := parseBatch(data)
	if err != nil {
		return reply{}, err
	}
	return reply{parts: s.decided(c.r.Context(), b, c.answer())}, nil
}
