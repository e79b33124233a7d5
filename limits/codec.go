package limits

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/sendgate/sendgate"
)

// codecVersion is the first byte of every document, so that its form can change.
const codecVersion = '1'

// maxPlainBytes is the longest document before it is compressed: what one may
// take of a gate's time and memory.
const maxPlainBytes = 4 << 20

// errDamaged is the error of a document that this package did not write.
var errDamaged = errors.New("a document of limits is damaged")

// wireShard is a shard as JSON: its values in the order of their keys.
type wireShard struct {
	Entries []wireEntry `json:"entries"`
}

type wireEntry struct {
	By     []sendgate.Field `json:"by"`
	Values []string         `json:"values"`
	Limits []wireLimit      `json:"limits"`
}

type wireLimit struct {
	Window sendgate.Duration `json:"window"`
	Limit  int               `json:"limit"`
}

// encodeShard writes a shard: the version, then JSON that gzip has compressed.
// One that would become too large is refused.
func encodeShard(s *shard) ([]byte, error) {
	w := wireShard{Entries: make([]wireEntry, 0, len(s.keys))}
	for _, key := range s.keys {
		v := valueOf(key)
		e := wireEntry{By: v.By, Values: v.Values}
		for _, l := range s.limits[key] {
			e.Limits = append(e.Limits, wireLimit(l))
		}
		w.Entries = append(w.Entries, e)
	}
	plain, err := json.Marshal(w, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteByte(codecVersion)
	z := gzip.NewWriter(&b)
	if _, err = z.Write(plain); err == nil {
		err = z.Close()
	}
	if err != nil {
		return nil, err
	}
	if b.Len() > MaxDocumentBytes || len(plain) > maxPlainBytes {
		return nil, sendgate.Errorf(sendgate.CodeRecordTooLarge, "",
			"there is no room for this value: its document would have %d bytes of at most %d, and %d of at most %d once unpacked; remove limits of values that are over",
			b.Len(), MaxDocumentBytes, len(plain), maxPlainBytes)
	}
	return b.Bytes(), nil
}

// decodeShard reads what encodeShard wrote.
func decodeShard(i int, d Document) (*shard, error) {
	if d.Revision == 0 {
		return &shard{}, nil
	}
	plain, err := unpack(d.Body)
	if err != nil {
		return nil, damaged(shardName(i), err)
	}
	var w wireShard
	if err := json.Unmarshal(plain, &w); err != nil {
		return nil, damaged(shardName(i), errors.New("it does not decode"))
	}
	limits := make(map[string][]sendgate.ValueLimit, len(w.Entries))
	for _, e := range w.Entries {
		v, faults := Value{e.By, e.Values}.sorted()
		list := make([]sendgate.ValueLimit, len(e.Limits))
		for j, l := range e.Limits {
			list[j] = sendgate.ValueLimit(l)
		}
		list, more := sortedLimits(list)
		if len(faults)+len(more) > 0 || shardOf([]byte(v.key())) != i {
			return nil, damaged(shardName(i), errors.New("a value or a limit in it is not legal there"))
		}
		limits[v.key()] = list
	}
	return newShard(d.Revision, limits), nil
}

func unpack(body []byte) ([]byte, error) {
	if len(body) == 0 || body[0] != codecVersion {
		return nil, errors.New("it is of another version")
	}
	z, err := gzip.NewReader(bytes.NewReader(body[1:]))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxPlainBytes+1))
	if err == nil && len(plain) > maxPlainBytes {
		err = fmt.Errorf("it has more than %d bytes", maxPlainBytes)
	}
	return plain, err
}

func damaged(name string, why error) error { return fmt.Errorf("%w: %s: %w", errDamaged, name, why) }

// index is the revision of every shard, as far as was announced.
type index struct {
	Revisions []int64 `json:"revisions"`
}

func encodeIndex(x index) ([]byte, error) {
	data, err := json.Marshal(x)
	return slices.Insert(data, 0, codecVersion), err
}

// decodeIndex reads what encodeIndex wrote. Before the first change all
// revisions are 0.
func decodeIndex(d Document) (index, error) {
	x := index{Revisions: make([]int64, Shards)}
	if d.Revision == 0 {
		return x, nil
	}
	if len(d.Body) == 0 || d.Body[0] != codecVersion {
		return x, damaged(indexName, errors.New("it is of another version"))
	}
	if err := json.Unmarshal(d.Body[1:], &x); err != nil || len(x.Revisions) != Shards {
		return x, damaged(indexName, errors.New("it does not decode"))
	}
	return x, nil
}
