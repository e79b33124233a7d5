package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// Get reads a user's record, as of the last write that was answered.
func (s *Store) Get(ctx context.Context, user sendgate.UserID) (*prefs.Record, error) {
	if err := user.Validate("user"); err != nil {
		return nil, err
	}
	found, err := s.get(ctx, s.tables.records, item{attrUser: text(user)})
	if err != nil {
		return nil, err
	}
	return s.recordAt(user, found)
}

// recordAt reads the item under a user's key, which may not be there.
func (s *Store) recordAt(user sendgate.UserID, i item) (*prefs.Record, error) {
	if len(i) == 0 {
		return &prefs.Record{User: user}, nil
	}
	return s.recordOf(i)
}

func (s *Store) get(ctx context.Context, t table, key item) (item, error) {
	out, err := call(ctx, s, "GetItem", t.name, s.client.GetItem, &dynamodb.GetItemInput{
		TableName: &t.name, Key: key, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// Put stores a record if the stored one has the given revision. A record of
// more than prefs.MaxRecordBytes is refused with sendgate.CodeRecordTooLarge, and
// nothing is sent. Most errors leave open whether it was stored; if it was, the
// same Put again is prefs.ErrConflict.
func (s *Store) Put(ctx context.Context, record *prefs.Record, ifRevision int64) error {
	if err := record.User.Validate("user"); err != nil {
		return err
	}
	i, err := recordItem(record)
	if err != nil {
		return err
	}
	condition := "#revision = :revision"
	if ifRevision == 0 {
		condition += " OR attribute_not_exists(#revision)"
	}
	_, err = call(ctx, s, "PutItem", s.tables.records.name, s.client.PutItem, &dynamodb.PutItemInput{
		TableName: &s.tables.records.name, Item: i,
		ConditionExpression:       &condition,
		ExpressionAttributeNames:  map[string]string{"#revision": attrRevision},
		ExpressionAttributeValues: item{":revision": number(ifRevision)},
	})
	if hasCode(err, codeConditionFailed) {
		return prefs.ErrConflict
	}
	return err
}

// putNew stores an item if none has its key. It is no error if one has.
func (s *Store) putNew(ctx context.Context, t table, i item) error {
	_, err := call(ctx, s, "PutItem", t.name, s.client.PutItem, &dynamodb.PutItemInput{
		TableName: &t.name, Item: i,
		ConditionExpression:      aws.String("attribute_not_exists(#key)"),
		ExpressionAttributeNames: map[string]string{"#key": t.keys[0].name},
	})
	if hasCode(err, codeConditionFailed) {
		return nil
	}
	return err
}

const layoutName = "layout"

// Layout returns the layout that the tables were created with, and stores the
// one given, which must have at least one partition, if there is none yet.
func (s *Store) Layout(ctx context.Context, initial prefs.Layout) (prefs.Layout, error) {
	layout, stored, err := s.layout(ctx)
	if err != nil || stored {
		return layout, err
	}
	if initial.Partitions < 1 {
		return prefs.Layout{}, fmt.Errorf("dynamostore: a layout of %d partitions", initial.Partitions)
	}
	body, err := json.Marshal(initial)
	if err != nil {
		return prefs.Layout{}, err
	}
	err = s.putNew(ctx, s.tables.meta, item{attrName: text(layoutName), attrBody: &types.AttributeValueMemberB{Value: body}})
	if err != nil {
		return prefs.Layout{}, err
	}
	layout, stored, err = s.layout(ctx) // which may be somebody else's
	if err == nil && !stored {
		err = errors.New("dynamostore: the layout was stored and is gone")
	}
	return layout, err
}

func (s *Store) layout(ctx context.Context) (layout prefs.Layout, stored bool, err error) {
	found, err := s.get(ctx, s.tables.meta, item{attrName: text(layoutName)})
	if err != nil || len(found) == 0 {
		return prefs.Layout{}, false, err
	}
	if err := json.Unmarshal(bodyOf(found), &layout); err != nil || layout.Partitions < 1 {
		return prefs.Layout{}, false, errDamaged(s.tables.meta.name, errForm)
	}
	return layout, true, nil
}
