package limits

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sendgate/sendgate"
)

// shard is one document as it is used: never changed once made.
type shard struct {
	revision int64 // of the document
	limits   map[string][]sendgate.ValueLimit
	keys     []string // of limits, sorted
}

func newShard(revision int64, limits map[string][]sendgate.ValueLimit) *shard {
	return &shard{revision, limits, slices.Sorted(maps.Keys(limits))}
}

// with is the next revision of the shard, with other limits of one value; none
// removes it.
func (s *shard) with(key string, limits []sendgate.ValueLimit) *shard {
	next := make(map[string][]sendgate.ValueLimit, len(s.limits)+1)
	maps.Copy(next, s.limits)
	if len(limits) == 0 {
		delete(next, key)
	} else {
		next[key] = limits
	}
	return newShard(s.revision+1, next)
}

// state is all limits at one moment.
type state struct {
	shards [Shards]*shard
	values int // that have limits
}

// Table is the limits that a gate obeys. It implements sendgate.ValueLimits:
// looking into it takes no lock, and reads nothing but memory. It is safe for
// concurrent use.
type Table struct {
	now  atomic.Pointer[state]
	swap sync.Mutex // held to replace what now points to
}

var _ sendgate.ValueLimits = (*Table)(nil)

// NewTable makes a table in which no value has limits.
func NewTable() *Table {
	t, empty := &Table{}, &state{}
	for i := range empty.shards {
		empty.shards[i] = &shard{}
	}
	t.now.Store(empty)
	return t
}

// Of lists the limits of the values of some fields, which are sorted by name.
func (t *Table) Of(by []sendgate.Field, values []string) []sendgate.ValueLimit {
	now := t.now.Load()
	if now.values == 0 {
		return nil
	}
	var room [256]byte // for a key of a usual length, so that it costs no allocation
	key := appendKey(room[:0], by, values)
	return now.shards[shardOf(key)].limits[string(key)]
}

// None tells that no value has limits.
func (t *Table) None() bool { return t.Len() == 0 }

// Len is how many values have limits.
func (t *Table) Len() int { return t.now.Load().values }

// revision is that of a shard.
func (t *Table) revision(i int) int64 { return t.now.Load().shards[i].revision }

// put takes a shard into use unless it has a newer one.
func (t *Table) put(i int, s *shard) {
	t.swap.Lock()
	defer t.swap.Unlock()
	now := t.now.Load()
	if s.revision <= now.shards[i].revision {
		return
	}
	next := &state{shards: now.shards, values: now.values - len(now.shards[i].limits) + len(s.limits)}
	next.shards[i] = s
	t.now.Store(next)
}

// page lists the values whose keys begin with prefix and come after a key, in
// the order of the keys, at most limit of them, and tells whether there are more.
func (t *Table) page(prefix, after string, limit int) (entries []Entry, more bool) {
	now := t.now.Load()
	var keys []string
	for _, s := range now.shards {
		from, found := slices.BinarySearch(s.keys, max(prefix, after))
		if found {
			from++
		}
		for _, key := range s.keys[from:min(len(s.keys), from+limit+1)] {
			if !strings.HasPrefix(key, prefix) {
				break
			}
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys[:min(len(keys), limit)] {
		entries = append(entries, Entry{valueOf(key), now.shards[shardOf([]byte(key))].limits[key]})
	}
	return entries, len(keys) > limit
}
