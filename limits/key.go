package limits

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/sendgate/sendgate"
)

// Shards is how many documents the values are spread over. It is part of the
// form of what is stored.
const Shards = 16

// A key is a value as text: its fields, sorted by name, and their values, in that
// order. A zero byte stands between two, and two between fields and values: no
// field and no value is empty or contains one. So the keys of the same fields
// stand together in the order of bytes.
const (
	between = "\x00"
	divider = "\x00\x00"
)

// appendKey appends the key of a value to b. With no values it is what the keys
// of these fields begin with.
func appendKey(b []byte, by []sendgate.Field, values []string) []byte {
	for i, f := range by {
		if i > 0 {
			b = append(b, between...)
		}
		b = append(b, f...)
	}
	b = append(b, divider...)
	for i, v := range values {
		if i > 0 {
			b = append(b, between...)
		}
		b = append(b, v...)
	}
	return b
}

func (v Value) key() string { return string(appendKey(nil, v.By, v.Values)) }

// valueOf reads a key.
func valueOf(key string) (v Value) {
	by, values, _ := strings.Cut(key, divider)
	for f := range strings.SplitSeq(by, between) {
		v.By = append(v.By, sendgate.Field(f))
	}
	v.Values = strings.Split(values, between)
	return v
}

// shardOf is the document that a key belongs to.
func shardOf(key []byte) int { return int(xxhash.Sum64(key) >> 32 % Shards) }

// The names of the documents.
const indexName = "limits/index"

func shardName(i int) string { return fmt.Sprintf("limits/%02d", i) }

// A cursor is a key as callers pass it on.
func cursorOf(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

func keyOf(cursor string) (string, *sendgate.Error) {
	key, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", sendgate.Errorf(sendgate.CodeInvalidField, "after", "is not what an earlier page gave as next")
	}
	return string(key), nil
}
