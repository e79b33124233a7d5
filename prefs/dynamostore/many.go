package dynamostore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v5"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/prefs"
)

// getMost is how many items DynamoDB reads in one call.
const getMost = 100

var errUnprocessed = errors.New("dynamostore: BatchGetItem: the server has left some of the records for later")

// GetMany reads many records, each as Get does, in calls of up to 100. What the
// server leaves for later is asked for again until the context ends; it is
// never taken for a user of whom nothing is stored.
func (s *Store) GetMany(ctx context.Context, users []sendgate.UserID) []prefs.Found {
	found := make([]prefs.Found, len(users))
	places := map[sendgate.UserID]int{}
	var asked []sendgate.UserID
	for i, user := range users {
		if err := user.Validate("user"); err != nil {
			found[i].Err = err
		} else if _, twice := places[user]; twice { // which a batch may not have
			found[i].Record, found[i].Err = s.Get(ctx, user)
		} else {
			places[user] = i
			asked = append(asked, user)
		}
	}
	for some := range slices.Chunk(asked, getMost) {
		for user, f := range s.getSome(ctx, some) {
			found[places[user]] = f
		}
	}
	return found
}

// getSome reads as many records as one call may, and asks again for what the
// server leaves for later.
func (s *Store) getSome(ctx context.Context, users []sendgate.UserID) map[sendgate.UserID]prefs.Found {
	found := map[sendgate.UserID]prefs.Found{}
	left := users
	pause := &backoff.ExponentialBackOff{InitialInterval: 10 * time.Millisecond, MaxInterval: time.Second, Multiplier: 2, RandomizationFactor: 0.5}
	pause.Reset()
	for len(left) > 0 {
		later, err := s.getOnce(ctx, left, found)
		if err == nil && len(later) > 0 {
			select {
			case <-time.After(pause.NextBackOff()):
			case <-ctx.Done():
				err = errors.Join(errUnprocessed, ctx.Err())
			}
		}
		if err != nil {
			for _, user := range left {
				if _, ok := found[user]; !ok {
					found[user] = prefs.Found{Err: err}
				}
			}
			return found
		}
		left = later
	}
	return found
}

// getOnce makes one call. later are the users whom the server has left for
// later; all others have been found, or are known not to be there.
func (s *Store) getOnce(ctx context.Context, users []sendgate.UserID, found map[sendgate.UserID]prefs.Found) (later []sendgate.UserID, err error) {
	keys := make([]item, len(users))
	for i, user := range users {
		keys[i] = item{attrUser: text(user)}
	}
	name := s.tables.records.name
	out, err := call(ctx, s, "BatchGetItem", name, s.client.BatchGetItem, &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{name: {Keys: keys, ConsistentRead: aws.Bool(true)}},
	})
	if err != nil {
		return nil, err
	}
	answered, err := s.answers(out, users)
	if err != nil {
		return nil, err
	}
	waits := map[sendgate.UserID]bool{}
	for _, key := range out.UnprocessedKeys[name].Keys {
		user, _ := textOf(key[attrUser])
		waits[sendgate.UserID(user)] = true
	}
	for _, user := range users {
		if waits[user] {
			later = append(later, user)
			continue
		}
		record, err := s.recordAt(user, answered[user])
		found[user] = prefs.Found{Record: record, Err: err}
	}
	return later, nil
}

// answers are the items of an answer by their users. Who is not among them is
// somebody of whom nothing is stored, so that an answer must be whole: one with
// an item of nobody who was asked about, or without a word about the table, is
// an error.
func (s *Store) answers(out *dynamodb.BatchGetItemOutput, users []sendgate.UserID) (map[sendgate.UserID]item, error) {
	name := s.tables.records.name
	items, told := out.Responses[name]
	if !told && len(out.UnprocessedKeys[name].Keys) < len(users) {
		return nil, errDamaged(name, errSilent)
	}
	answered := map[sendgate.UserID]item{}
	for _, i := range items {
		user, _ := textOf(i[attrUser])
		if !slices.Contains(users, sendgate.UserID(user)) {
			return nil, errDamaged(name, errKey)
		}
		answered[sendgate.UserID(user)] = i
	}
	return answered, nil
}
