package feed

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
)

const (
	markLimit = 10 * time.Second // of marking all partitions
	// markedAtOnce is how many partitions are marked in one round trip. Each
	// takes a script, and a client waits 2 s for what it has sent.
	markedAtOnce = 32
)

// markPrefix begins the text of a position's mark. A message never does: it is
// a JSON object.
const markPrefix = "#"

// isMark tells whether an entry's text is a mark and no message.
func isMark(text string) bool { return text == "" || strings.HasPrefix(text, markPrefix) }

// Mark appends a mark to every partition's stream, all with a token that
// nothing else has, and returns where they stand. Whatever was announced
// before Mark began stands before them. If a partition could not be marked
// within 10 s, there is no position; the marks that were made do no harm.
func (p *Publisher) Mark(ctx context.Context) (sendgate.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, markLimit)
	defer cancel()
	position := sendgate.Position{Token: ulid.Make().String()}
	for some := range p.streams.all(markedAtOnce) {
		marks, err := p.mark(ctx, some, markPrefix+position.Token)
		if err != nil {
			return sendgate.Position{}, fmt.Errorf("mark a position in the change streams: %w", err)
		}
		position.Offsets = append(position.Offsets, marks...)
	}
	return position, nil
}

// mark marks some partitions in one round trip. The script goes along with
// every call: a pipeline could not send it again to a Redis that does not know
// it.
func (p *Publisher) mark(ctx context.Context, partitions []int, text string) ([]sendgate.Offset, error) {
	pipe := p.streams.client.Pipeline()
	cmds := make([]*redis.Cmd, len(partitions))
	for i, partition := range partitions {
		cmds[i] = pipe.Eval(ctx, positionSource, []string{p.streams.space.Stream(partition)},
			text, maxStreamLength, p.streams.space.Channel(), partition)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	marks := make([]sendgate.Offset, len(cmds))
	for i, cmd := range cmds {
		id, err := cmd.Text()
		if err == nil {
			marks[i], err = sendgate.ParseOffset(id)
		}
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", partitions[i], err)
		}
	}
	return marks, nil
}

// Added is how many entries were ever appended to all streams together, marks
// included: what it has grown by is about how many changes there were. It may
// go back when Redis loses data. A Redis before 7 does not count, and the
// embedded one neither: there it is how many entries the streams hold, which
// stops growing where streams are trimmed.
func (p *Publisher) Added(ctx context.Context) (n int64, err error) {
	for some := range p.streams.all(pipelineSize) {
		added, err := p.added(ctx, some)
		if err != nil {
			return 0, fmt.Errorf("count the entries of the change streams: %w", err)
		}
		n += added
	}
	return n, nil
}

func (p *Publisher) added(ctx context.Context, partitions []int) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	pipe := p.streams.client.Pipeline()
	cmds := make([]*redis.XInfoStreamCmd, len(partitions))
	for i, partition := range partitions {
		cmds[i] = pipe.XInfoStream(ctx, p.streams.space.Stream(partition))
	}
	// Its error is one of the commands', which may be the least of them.
	_, _ = pipe.Exec(ctx)
	for i, cmd := range cmds {
		info, err := cmd.Result()
		if redis.HasErrorPrefix(err, "no such key") {
			continue // nothing was announced there yet
		}
		if err != nil {
			return 0, fmt.Errorf("partition %d: %w", partitions[i], err)
		}
		n += max(info.EntriesAdded, info.Length)
	}
	return n, nil
}
