package dynamostore

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sendgate/sendgate/limits"
)

// documentName keeps documents apart from what else there is in the table.
func documentName(name string) string { return "document " + name }

// ReadDocument reads a document, as of the last write that was answered.
func (s *Store) ReadDocument(ctx context.Context, name string) (limits.Document, error) {
	key := documentName(name)
	found, err := s.get(ctx, s.tables.meta, item{attrName: text(key)})
	if err != nil || len(found) == 0 {
		return limits.Document{}, err
	}
	if own, ok := textOf(found[attrName]); !ok || own != key {
		return limits.Document{}, errDamaged(s.tables.meta.name, errOther)
	}
	revision, ok := numberOf(found[attrRevision])
	if body := bodyOf(found); ok && revision > 0 && body != nil {
		return limits.Document{Revision: revision, Body: body}, nil
	}
	return limits.Document{}, errDamaged(s.tables.meta.name, errForm)
}

// WriteDocument stores a body if the stored document has the given revision. Most
// errors leave open whether it was stored; if it was, the same write again is
// limits.ErrConflict.
func (s *Store) WriteDocument(ctx context.Context, name string, body []byte, ifRevision int64) error {
	if name == "" || len(body) > limits.MaxDocumentBytes {
		return fmt.Errorf("dynamostore: a document %q of %d bytes", name, len(body))
	}
	in := &dynamodb.PutItemInput{
		TableName: &s.tables.meta.name,
		Item: item{
			attrName: text(documentName(name)), attrRevision: number(ifRevision + 1),
			attrBody: &types.AttributeValueMemberB{Value: body},
		},
		ConditionExpression:       aws.String("#revision = :revision"),
		ExpressionAttributeNames:  map[string]string{"#revision": attrRevision},
		ExpressionAttributeValues: item{":revision": number(ifRevision)},
	}
	if ifRevision == 0 {
		in.ConditionExpression, in.ExpressionAttributeValues = aws.String("attribute_not_exists(#revision)"), nil
	}
	_, err := call(ctx, s, "PutItem", s.tables.meta.name, s.client.PutItem, in)
	if hasCode(err, codeConditionFailed) {
		return limits.ErrConflict
	}
	return err
}
