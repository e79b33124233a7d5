package feed

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	pageSize     = 500 // entries read at once from one stream
	pipelineSize = 64  // streams read in one round trip
)

// catchUp reads the streams of partitions from their cursors to their ends. A
// partition that has no cursor yet gets one at the end of its stream: nothing
// that was announced before this follower came is missed by it.
func (f *Follower) catchUp(ctx context.Context, partitions []int) error {
	for some := range slices.Chunk(partitions, pipelineSize) {
		if err := f.catchUpSome(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (f *Follower) catchUpSome(ctx context.Context, partitions []int) error {
	for len(partitions) > 0 {
		replies, err := f.page(ctx, partitions)
		if err != nil {
			return err
		}
		var more []int
		for i, p := range partitions {
			entries := entriesOf(replies[i])
			if f.cursors[p].id == "" {
				f.cursors[p] = lastOf(entries)
				continue
			}
			if f.advance(p, entries) {
				more = append(more, p)
			}
		}
		partitions = more
	}
	return nil
}

// page reads a page of each partition's stream: from the cursor, that entry
// included, or the last entry where there is no cursor yet.
func (f *Follower) page(ctx context.Context, partitions []int) ([][]redis.XMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	pipe := f.client.Pipeline()
	cmds := make([]*redis.XMessageSliceCmd, len(partitions))
	for i, p := range partitions {
		if cursor := f.cursors[p]; cursor.id == "" {
			cmds[i] = pipe.XRevRangeN(ctx, f.space.Stream(p), "+", "-", 1)
		} else {
			cmds[i] = pipe.XRangeN(ctx, f.space.Stream(p), cursor.id, "+", pageSize)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	replies := make([][]redis.XMessage, len(cmds))
	for i, cmd := range cmds {
		replies[i] = cmd.Val()
	}
	return replies, nil
}

// advance takes the entries of a page that begins at the cursor, and tells
// whether there may be more.
func (f *Follower) advance(partition int, entries []entry) (more bool) {
	more = len(entries) == pageSize
	if cursor := f.cursors[partition]; cursor.id != noEntry {
		if len(entries) == 0 || entries[0].id != cursor.id || entries[0].text != cursor.text {
			f.log.Warn("the change stream does not hold this gate's cursor any more: something may have been missed", "partition", partition)
			f.sink.Gap()
			f.cursors[partition] = entry{id: noEntry}
			// Whatever the stream holds now is read from its beginning.
			return true
		}
		entries = entries[1:]
	}
	for i, e := range entries {
		if e.previous != f.cursors[partition].id && !(i == 0 && f.cursors[partition].id == noEntry) {
			f.log.Warn("the change stream has lost entries: something may have been missed", "partition", partition)
			f.sink.Gap()
		}
		f.take(partition, e)
	}
	return more
}

func entriesOf(messages []redis.XMessage) []entry {
	entries := make([]entry, len(messages))
	for i, m := range messages {
		text, _ := m.Values["m"].(string)
		previous, _ := m.Values["p"].(string)
		entries[i] = entry{id: m.ID, previous: previous, text: text}
	}
	return entries
}

func lastOf(entries []entry) entry {
	if len(entries) == 0 {
		return entry{id: noEntry}
	}
	return entries[len(entries)-1]
}

// after tells whether a stream id is later than another.
func after(a, b string) bool {
	aMillis, aSeq := splitID(a)
	bMillis, bSeq := splitID(b)
	return aMillis > bMillis || aMillis == bMillis && aSeq > bSeq
}

func splitID(id string) (millis, seq uint64) {
	m, s, _ := strings.Cut(id, "-")
	millis, _ = strconv.ParseUint(m, 10, 64)
	seq, _ = strconv.ParseUint(s, 10, 64)
	return millis, seq
}
