package feed

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	pageSize     = 200 // entries read at once from one stream
	pipelineSize = 256 // streams read in one round trip
)

// cursor is how far a partition's stream has been read: up to an entry, that
// included. The zero cursor is "not read yet".
type cursor struct {
	entry
	// gapped says that what follows is known not to follow the entry: the gap
	// has been reported.
	gapped bool
}

// catchUpAll reads every partition's stream to its end. A stream that has no
// cursor yet gets one there. What was announced before that was not heard
// here, so that what this gate knows from its own changes may be outdated: to
// the sink, that is a gap too.
func (f *Follower) catchUpAll(ctx context.Context) error {
	var known, fresh []int
	for p := range f.cursors {
		if f.cursors[p].id == "" {
			fresh = append(fresh, p)
		} else {
			known = append(known, p)
		}
	}
	if err := f.catchUp(ctx, known); err != nil {
		return err
	}
	if len(fresh) == 0 {
		return nil
	}
	defer f.sink.Gap()
	for some := range slices.Chunk(fresh, pipelineSize) {
		replies, err := f.page(ctx, some)
		if err != nil {
			return err
		}
		for i, p := range some {
			last := lastOf(entriesOf(replies[i]))
			if last.id == noEntry {
				last = f.mark(ctx, p)
			}
			f.cursors[p] = cursor{entry: last}
		}
	}
	return nil
}

// mark puts a mark into an empty stream, so that its loss can be noticed. A
// Redis that takes no writes leaves it empty; whatever is found in it later
// without having been heard is a gap then.
func (f *Follower) mark(ctx context.Context, partition int) entry {
	ctx, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	reply, err := markScript.Run(ctx, f.client, []string{f.space.Stream(partition)}).StringSlice()
	if err != nil || len(reply) != 2 {
		f.log.Warn("a change stream is empty and could not be marked", "partition", partition, "error", err)
		return entry{id: noEntry}
	}
	return entry{id: reply[0], text: reply[1]}
}

// catchUp reads the streams of partitions from their cursors to their ends.
func (f *Follower) catchUp(ctx context.Context, partitions []int) error {
	for some := range slices.Chunk(partitions, pipelineSize) {
		for len(some) > 0 {
			replies, err := f.page(ctx, some)
			if err != nil {
				return err
			}
			pages := make([][]entry, len(some))
			for i := range some {
				pages[i] = entriesOf(replies[i])
			}
			lost := f.findLost(some, pages)
			var more []int
			for i, p := range some {
				if lost[p] || f.advance(p, pages[i]) {
					more = append(more, p)
				}
			}
			some = more
		}
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
		if last := f.cursors[p]; last.id == "" {
			cmds[i] = pipe.XRevRangeN(ctx, f.space.Stream(p), "+", "-", 1)
		} else {
			cmds[i] = pipe.XRangeN(ctx, f.space.Stream(p), last.id, "+", pageSize)
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

// findLost finds the partitions whose streams do not hold their cursors any
// more. They are reported together, as one gap, before anything is taken from
// any stream: what is taken afterwards is known for certain. Whatever these
// streams hold now is to be read from the beginning.
func (f *Follower) findLost(partitions []int, pages [][]entry) map[int]bool {
	lost := map[int]bool{}
	for i, p := range partitions {
		last := f.cursors[p]
		if last.id != noEntry && (len(pages[i]) == 0 || pages[i][0].id != last.id || pages[i][0].text != last.text) {
			lost[p] = true
			f.cursors[p] = cursor{entry: entry{id: noEntry}, gapped: true}
		}
	}
	if len(lost) > 0 {
		f.log.Warn("change streams do not hold this gate's cursors any more: something may have been missed", "partitions", len(lost))
		f.sink.Gap()
	}
	return lost
}

// advance takes the entries of a page that begins at the cursor, and tells
// whether there may be more.
func (f *Follower) advance(partition int, entries []entry) (more bool) {
	more = len(entries) == pageSize
	if last := f.cursors[partition]; last.id != noEntry {
		entries = entries[1:]
	} else if len(entries) > 0 && !f.cursors[partition].gapped {
		// A stream that was empty cannot show whether these are its first
		// entries, or the first since it was lost.
		f.gap(partition, "the change stream was empty and has entries that were not heard: something may have been missed")
		f.cursors[partition].gapped = true
	}
	for _, e := range entries {
		if last := f.cursors[partition]; e.previous != last.id && !last.gapped {
			f.gap(partition, "the change stream has lost entries: something may have been missed")
		}
		f.take(partition, e)
	}
	return more
}

func (f *Follower) gap(partition int, what string) {
	f.log.Warn(what, "partition", partition)
	f.sink.Gap()
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
	aMillis, aSeq, _ := splitID(a)
	bMillis, bSeq, _ := splitID(b)
	return aMillis > bMillis || aMillis == bMillis && aSeq > bSeq
}

// isID tells whether a text is a stream id in the form that Redis gives it.
func isID(id string) bool {
	millis, seq, ok := splitID(id)
	return ok && id == strconv.FormatUint(millis, 10)+"-"+strconv.FormatUint(seq, 10)
}

func splitID(id string) (millis, seq uint64, ok bool) {
	m, s, ok := strings.Cut(id, "-")
	millis, err1 := strconv.ParseUint(m, 10, 64)
	seq, err2 := strconv.ParseUint(s, 10, 64)
	return millis, seq, ok && err1 == nil && err2 == nil
}
