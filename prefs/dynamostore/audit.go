package dynamostore

import (
	"context"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// AppendChange stores a change. The first one of a user and revision stays.
func (s *Store) AppendChange(ctx context.Context, user sendgate.UserID, change prefs.Change) error {
	if err := user.Validate("user"); err != nil {
		return err
	}
	body, err := prefs.EncodeChange(change)
	if err != nil {
		return err
	}
	i, err := bodied(user, change.Revision, body)
	if err != nil {
		return err
	}
	return s.putNew(ctx, s.tables.changes, i)
}

// Changes lists a user's changes as of the last append that was answered. A
// limit below 1 lists none.
func (s *Store) Changes(ctx context.Context, user sendgate.UserID, after int64, limit int) ([]prefs.Change, error) {
	if err := user.Validate("user"); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in := &dynamodb.QueryInput{
		TableName: &s.tables.changes.name, ConsistentRead: aws.Bool(true), ScanIndexForward: aws.Bool(true),
		KeyConditionExpression:    aws.String("#user = :user AND #revision > :after"),
		ExpressionAttributeNames:  map[string]string{"#user": attrUser, "#revision": attrRevision},
		ExpressionAttributeValues: item{":user": text(user), ":after": number(after)},
	}
	var changes []prefs.Change
	for more := true; more && len(changes) < limit; {
		in.Limit = aws.Int32(int32(min(limit-len(changes), math.MaxInt32)))
		page, err := call(ctx, s, "Query", s.tables.changes.name, s.client.Query, in)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Items {
			change, err := s.changeOf(user, i)
			if err != nil {
				return nil, err
			}
			changes = append(changes, change)
		}
		in.ExclusiveStartKey = page.LastEvaluatedKey
		more = len(page.LastEvaluatedKey) > 0
	}
	return changes, nil
}
