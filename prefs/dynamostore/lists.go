package dynamostore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/time/rate"

	"github.com/sendgate/sendgate/prefs"
)

// maxSegments is the server's own bound.
const maxSegments = 1_000_000

// pageLimit is how long one page of what is pending may take. A gate asks again
// every two seconds, and what was lost on the way must not hold that up.
const pageLimit = 2 * time.Second

// Pending lists one of prefs.PendingShards shards. It lags behind Put, as a rule
// by less than a second. A record whose oldest pending change becomes another
// one while the list is under way may come twice, or not at all.
func (s *Store) Pending(ctx context.Context, shard int, each func(prefs.PendingEntry) error) error {
	if shard < 0 || shard >= prefs.PendingShards {
		return fmt.Errorf("dynamostore: no shard %d of %d", shard, prefs.PendingShards)
	}
	in := &dynamodb.QueryInput{
		TableName: &s.tables.records.name, IndexName: aws.String(indexPending), ScanIndexForward: aws.Bool(true),
		KeyConditionExpression:    aws.String("#shard = :shard"),
		ExpressionAttributeNames:  map[string]string{"#shard": attrShard},
		ExpressionAttributeValues: item{":shard": number(int64(shard))},
	}
	for more := true; more; {
		page, err := s.pendingPage(ctx, in)
		if err != nil {
			return err
		}
		if err := hand(ctx, page.Items, s.entryOf, each); err != nil {
			return err
		}
		in.ExclusiveStartKey = page.LastEvaluatedKey
		more = len(page.LastEvaluatedKey) > 0
	}
	return nil
}

func (s *Store) pendingPage(ctx context.Context, in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	return call(ctx, s, "Query", s.tables.records.name, s.client.Query, in)
}

// Scan reads one segment of at most 1,000,000, page by page. It takes no more of
// the table's capacity than Options say, and waits accordingly; a context whose
// end would come before that is an error at once. The first error of the server
// and the first record that does not decode end it and are returned.
func (s *Store) Scan(ctx context.Context, segment, segments int, each func(*prefs.Record) error) error {
	if segment < 0 || segment >= segments || segments > maxSegments {
		return fmt.Errorf("dynamostore: no segment %d of %d", segment, segments)
	}
	in := &dynamodb.ScanInput{
		TableName: &s.tables.records.name, ConsistentRead: aws.Bool(true),
		Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(segments)),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	for more := true; more; {
		page, err := call(ctx, s, "Scan", s.tables.records.name, s.client.Scan, in)
		if err != nil {
			return err
		}
		if err := hand(ctx, page.Items, s.recordOf, each); err != nil {
			return err
		}
		if err := s.scans.pay(ctx, page.ConsumedCapacity); err != nil {
			return err
		}
		in.ExclusiveStartKey = page.LastEvaluatedKey
		more = len(page.LastEvaluatedKey) > 0 // a page without items may have others behind it
	}
	return nil
}

// hand decodes items and hands them out until there is an error.
func hand[T any](ctx context.Context, items []item, decode func(item) (T, error), each func(T) error) error {
	for _, i := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := decode(i)
		if err != nil {
			return err
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return nil
}

// pacer holds scans to a number of read units a second. What a page costs is
// known only afterwards, so it is paid for afterwards.
type pacer struct{ limiter *rate.Limiter }

// pay waits until what a page cost is within the rate. A server that does not
// say what it cost is not paced.
func (p pacer) pay(ctx context.Context, cost *types.ConsumedCapacity) error {
	if cost == nil {
		return nil
	}
	for units := int(math.Ceil(aws.ToFloat64(cost.CapacityUnits))); units > 0; {
		part := min(units, p.limiter.Burst()) // a limiter refuses to wait for more at once
		if err := p.limiter.WaitN(ctx, part); err != nil {
			return fmt.Errorf("dynamostore: a scan is held to %v read units a second: %w", p.limiter.Limit(), err)
		}
		units -= part
	}
	return nil
}
