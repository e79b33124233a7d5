package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// How long tables that are being made are waited for, and how often they are
// looked at.
const (
	readyLimit = 2 * time.Minute
	pollFirst  = 10 * time.Millisecond
	pollMost   = time.Second
)

// Names of attributes and of the index. `user` and others are reserved words of
// expressions, which therefore use aliases for all of them.
const (
	attrUser     = "user"
	attrRevision = "revision"
	attrBody     = "body"
	attrShard    = "shard"
	attrSince    = "since"
	attrName     = "name"
	indexPending = "pending"
)

// table is what this package relies on in a table: its keys.
type table struct {
	name  string
	keys  []key
	index []key // of indexPending; nil if it has none
}

type key struct {
	name string
	kind types.ScalarAttributeType
}

type tables struct{ records, changes, meta table }

func tablesOf(prefix string) tables {
	user, revision := key{attrUser, types.ScalarAttributeTypeS}, key{attrRevision, types.ScalarAttributeTypeN}
	shard, since := key{attrShard, types.ScalarAttributeTypeN}, key{attrSince, types.ScalarAttributeTypeN}
	return tables{
		records: table{name: prefix + "-records", keys: []key{user}, index: []key{shard, since}},
		changes: table{name: prefix + "-changes", keys: []key{user, revision}},
		meta:    table{name: prefix + "-meta", keys: []key{{attrName, types.ScalarAttributeTypeS}}},
	}
}

// prepare makes sure that all tables are there and ready.
func (s *Store) prepare(ctx context.Context, create bool) error {
	all := []table{s.tables.records, s.tables.changes, s.tables.meta}
	var missing []error
	for _, t := range all { // all at once, as each takes a while to be made
		_, err := s.describe(ctx, t)
		switch {
		case hasCode(err, codeMissing) && create:
			err = s.create(ctx, t)
		case hasCode(err, codeMissing):
			missing = append(missing, fmt.Errorf("dynamostore: there is no table %q at %s: create it, or have it created (create: true)", t.name, s.where))
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return errors.Join(missing...)
	}
	for _, t := range all {
		if err := s.await(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) describe(ctx context.Context, t table) (*types.TableDescription, error) {
	out, err := call(ctx, s, "DescribeTable", t.name, s.client.DescribeTable, &dynamodb.DescribeTableInput{TableName: &t.name})
	if err != nil {
		return nil, err
	}
	if out.Table == nil {
		return &types.TableDescription{}, nil
	}
	return out.Table, nil
}

// create has a table made, unless somebody else is just doing so.
func (s *Store) create(ctx context.Context, t table) error {
	in := &dynamodb.CreateTableInput{
		TableName: &t.name, BillingMode: types.BillingModePayPerRequest, KeySchema: schemaOf(t.keys),
	}
	kinds := map[string]types.ScalarAttributeType{} // an attribute is declared once, whatever it is part of
	for _, k := range slices.Concat(t.keys, t.index) {
		kinds[k.name] = k.kind
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: kinds[name]})
	}
	if t.index != nil {
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: aws.String(indexPending), KeySchema: schemaOf(t.index),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{attrRevision}},
		}}
	}
	_, err := call(ctx, s, "CreateTable", t.name, s.client.CreateTable, in)
	if hasCode(err, codeInUse) {
		return nil
	}
	return err
}

func schemaOf(keys []key) (schema []types.KeySchemaElement) {
	for i, k := range keys {
		role := types.KeyTypeHash
		if i > 0 {
			role = types.KeyTypeRange
		}
		schema = append(schema, types.KeySchemaElement{AttributeName: &k.name, KeyType: role})
	}
	return schema
}

// await waits until a table is ready.
func (s *Store) await(ctx context.Context, t table) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for delay := pollFirst; ; delay = min(2*delay, pollMost) {
		is, err := s.describe(ctx, t)
		switch {
		case hasCode(err, codeMissing): // the server may take a moment to know of it everywhere
		case err != nil:
			return err
		case is.TableStatus == types.TableStatusActive, is.TableStatus == types.TableStatusUpdating:
			return t.check(is)
		case is.TableStatus != types.TableStatusCreating:
			return fmt.Errorf("dynamostore: the table %q at %s is in the state %q", t.name, s.where, is.TableStatus)
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return fmt.Errorf("dynamostore: the table %q at %s is still being created: %w", t.name, s.where, ctx.Err())
		}
	}
}

// check compares a table with what this package relies on.
func (t table) check(is *types.TableDescription) error {
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range is.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	if !sameKeys(t.keys, is.KeySchema, kinds) {
		return fmt.Errorf("dynamostore: the table %q has other keys: is it another program's?", t.name)
	}
	if t.index == nil {
		return nil
	}
	for _, index := range is.GlobalSecondaryIndexes {
		if aws.ToString(index.IndexName) != indexPending {
			continue
		}
		if !sameKeys(t.index, index.KeySchema, kinds) {
			return fmt.Errorf("dynamostore: the index %q of the table %q has other keys", indexPending, t.name)
		}
		if index.IndexStatus == types.IndexStatusCreating || index.IndexStatus == types.IndexStatusDeleting {
			return fmt.Errorf("dynamostore: the index %q of the table %q is in the state %q", indexPending, t.name, index.IndexStatus)
		}
		return nil
	}
	return fmt.Errorf("dynamostore: the table %q has no index %q", t.name, indexPending)
}

func sameKeys(want []key, is []types.KeySchemaElement, kinds map[string]types.ScalarAttributeType) bool {
	return slices.EqualFunc(schemaOf(want), is, func(a, b types.KeySchemaElement) bool {
		return *a.AttributeName == aws.ToString(b.AttributeName) && a.KeyType == b.KeyType
	}) && !slices.ContainsFunc(want, func(k key) bool { return kinds[k.name] != k.kind })
}
