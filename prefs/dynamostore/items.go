package dynamostore

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// item is an item of a table, or a part of one.
type item = map[string]types.AttributeValue

// errDamaged is the error of an item that this package did not write. It says
// which table, and never whose item it was.
func errDamaged(table string, why error) error {
	return fmt.Errorf("dynamostore: an item of the table %q is damaged: %w", table, why)
}

var (
	errForm   = errors.New("its body does not decode") // for a decoder's own, which may quote what it read
	errOther  = errors.New("it is stored under another's key")
	errKey    = errors.New("its key has another form")
	errSilent = errors.New("an answer about many does not speak of it")
)

func text[T ~string](v T) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: string(v)}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func textOf(v types.AttributeValue) (string, bool) {
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	return s.Value, true
}

func numberOf(v types.AttributeValue) (int64, bool) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	return i, err == nil
}

// bodyOf is an item's body, or nil.
func bodyOf(i item) []byte {
	b, ok := i[attrBody].(*types.AttributeValueMemberB)
	if !ok {
		return nil
	}
	return b.Value
}

// bodied makes an item of a user and a revision. A body of more than
// prefs.MaxRecordBytes is refused: the server would do that only after all of it
// was sent, and in words of its own.
func bodied(user sendgate.UserID, revision int64, body []byte) (item, error) {
	if len(body) > prefs.MaxRecordBytes {
		return nil, sendgate.Errorf(sendgate.CodeRecordTooLarge, "", "the record would have %d bytes, and at most %d are stored", len(body), prefs.MaxRecordBytes)
	}
	return item{attrUser: text(user), attrRevision: number(revision), attrBody: &types.AttributeValueMemberB{Value: body}}, nil
}

// isOf tells whether an item stands under a user and a revision.
func (k itemKey) isOf(i item) bool {
	user, isText := textOf(i[attrUser])
	revision, isNumber := numberOf(i[attrRevision])
	return isText && isNumber && k == itemKey{sendgate.UserID(user), revision}
}

type itemKey struct {
	user     sendgate.UserID
	revision int64
}

func recordItem(r *prefs.Record) (item, error) {
	body, err := prefs.EncodeRecord(r)
	if err != nil {
		return nil, err
	}
	i, err := bodied(r.User, r.Revision, body)
	if err != nil || len(r.Pending) == 0 {
		return i, err
	}
	since := int64(0)
	if at := r.PendingSince(); !at.IsZero() {
		since = at.UnixMilli()
	}
	i[attrShard], i[attrSince] = number(int64(prefs.PendingShard(r.User))), number(since)
	return i, nil
}

// recordOf reads a record and makes sure that it is the one that belongs under
// its key.
func (s *Store) recordOf(i item) (*prefs.Record, error) {
	r, err := prefs.DecodeRecord(bodyOf(i))
	if err != nil {
		return nil, errDamaged(s.tables.records.name, errForm)
	}
	if !(itemKey{r.User, r.Revision}).isOf(i) {
		return nil, errDamaged(s.tables.records.name, errOther)
	}
	return r, nil
}

func (s *Store) changeOf(user sendgate.UserID, i item) (prefs.Change, error) {
	c, err := prefs.DecodeChange(bodyOf(i))
	if err != nil {
		return c, errDamaged(s.tables.changes.name, errForm)
	}
	if !(itemKey{user, c.Revision}).isOf(i) {
		return c, errDamaged(s.tables.changes.name, errOther)
	}
	return c, nil
}

// entryOf reads an entry of the pending index.
func (s *Store) entryOf(i item) (prefs.PendingEntry, error) {
	user, isText := textOf(i[attrUser])
	since, isNumber := numberOf(i[attrSince])
	if !isText || !isNumber {
		return prefs.PendingEntry{}, errDamaged(s.tables.records.name, errKey)
	}
	entry := prefs.PendingEntry{User: sendgate.UserID(user)}
	entry.Revision, _ = numberOf(i[attrRevision]) // an index of keys alone does not have it
	if since != 0 {
		entry.Since = time.UnixMilli(since).UTC()
	}
	return entry, nil
}
