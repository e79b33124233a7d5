package feed

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
)

const (
	pageSize     = 200 // entries read at once from one stream
	pipelineSize = 256 // streams asked in one round trip
)

// streams reads the streams of the partitions.
type streams struct {
	client redis.UniversalClient
	space  *keyspace.Space
}

// all are all partitions, so many at a time.
func (s streams) all(atOnce int) iter.Seq[[]int] {
	all := make([]int, s.space.Partitions())
	for p := range all {
		all[p] = p
	}
	return slices.Chunk(all, atOnce)
}

// taker is handed a page of each of some partitions' streams, and says which
// of these are to be read on.
type taker func(partitions []int, pages [][]entry) (more []int, err error)

// walk reads partitions' streams until take has enough of each. Every page
// begins where from says by then: with that entry, if it is still there. No
// more is held at once than one page of each stream of a round trip.
func (s streams) walk(ctx context.Context, partitions []int, from func(partition int) sendgate.Offset, take taker) error {
	for some := range slices.Chunk(partitions, pipelineSize) {
		for len(some) > 0 {
			pages, err := s.read(ctx, some, func(pipe redis.Pipeliner, p int) *redis.XMessageSliceCmd {
				return pipe.XRangeN(ctx, s.space.Stream(p), from(p).String(), "+", pageSize)
			})
			if err != nil {
				return err
			}
			if some, err = take(some, pages); err != nil {
				return err
			}
		}
	}
	return nil
}

// last reads the last entry of each of some partitions' streams; the zero entry
// is that of an empty one.
func (s streams) last(ctx context.Context, partitions []int) ([]entry, error) {
	pages, err := s.read(ctx, partitions, func(pipe redis.Pipeliner, p int) *redis.XMessageSliceCmd {
		return pipe.XRevRangeN(ctx, s.space.Stream(p), "+", "-", 1)
	})
	if err != nil {
		return nil, err
	}
	last := make([]entry, len(pages))
	for i, page := range pages {
		if len(page) > 0 {
			last[i] = page[0]
		}
	}
	return last, nil
}

// read asks the same of each of some partitions' streams, in one round trip.
func (s streams) read(ctx context.Context, partitions []int, ask func(redis.Pipeliner, int) *redis.XMessageSliceCmd) ([][]entry, error) {
	ctx, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	pipe := s.client.Pipeline()
	cmds := make([]*redis.XMessageSliceCmd, len(partitions))
	for i, p := range partitions {
		cmds[i] = ask(pipe, p)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	pages := make([][]entry, len(cmds))
	for i, cmd := range cmds {
		var err error
		if pages[i], err = entriesOf(cmd.Val()); err != nil {
			return nil, fmt.Errorf("the stream of partition %d: %w", partitions[i], err)
		}
	}
	return pages, nil
}

// entry is one entry of a stream.
type entry struct {
	at, previous sendgate.Offset // previous is zero before the first entry, and where an entry does not say
	text         string          // an encoded message, or a mark
}

// noEntry stands before the first entry of a stream.
var noEntry sendgate.Offset

func entriesOf(messages []redis.XMessage) ([]entry, error) {
	entries := make([]entry, len(messages))
	for i, m := range messages {
		at, err := sendgate.ParseOffset(m.ID)
		if err != nil {
			return nil, err
		}
		text, _ := m.Values["m"].(string)
		named, _ := m.Values["p"].(string)
		previous, _ := sendgate.ParseOffset(named) // what is none follows nothing
		entries[i] = entry{at: at, previous: previous, text: text}
	}
	return entries, nil
}

// begins tells whether a page begins with an entry, unchanged.
func (e entry) begins(page []entry) bool {
	return len(page) > 0 && page[0].at == e.at && page[0].text == e.text
}
