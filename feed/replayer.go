package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/keyspace"
)

// ErrPositionLost is the end of a replay from a position that the streams do
// not lead on from: a mark was trimmed away or lost, is another master's, or
// entries after it are gone. Only a newer position helps.
var ErrPositionLost = errors.New("the change streams have lost the position")

// Replayer hands out the changes that stand after a position. It is safe for
// concurrent use. A replay that begins while a Follower is live and the
// Follower together miss nothing that was announced after the position.
type Replayer struct{ streams streams }

// NewReplayer makes a Replayer.
func NewReplayer(client redis.UniversalClient, space *keyspace.Space) *Replayer {
	return &Replayer{streams{client, space}}
}

// Replay hands every change that stands after the position to apply, those of
// a partition in the order of its stream, to the end that the stream has when
// it gets there: every change that was announced before Replay began is among
// them.
//
// ErrPositionLost is returned if some may be missing. A message that is not
// understood is an error too, as is a position that is not one of these
// partitions, and a Redis that does not answer. Whatever was applied before an
// error is true, but not all.
func (r *Replayer) Replay(ctx context.Context, from sendgate.Position, apply func(c sendgate.Consent, at sendgate.Place)) error {
	if from.Token == "" {
		return errors.New("a position without a token")
	}
	if n := r.streams.space.Partitions(); len(from.Offsets) != n {
		return fmt.Errorf("a position in %d partitions, where there are %d", len(from.Offsets), n)
	}
	run := replay{last: make([]entry, len(from.Offsets)), apply: apply}
	for p, at := range from.Offsets {
		run.last[p] = entry{at: at, text: markPrefix + from.Token}
	}
	for some := range r.streams.all(pipelineSize) {
		if err := r.streams.walk(ctx, some, run.reached, run.take); err != nil {
			return err
		}
	}
	return nil
}

// replay is one run of a Replayer.
type replay struct {
	last  []entry // read in each partition; the mark at first
	apply func(c sendgate.Consent, at sendgate.Place)
}

func (r *replay) reached(partition int) sendgate.Offset { return r.last[partition].at }

// take applies a page of each partition's stream, once each is known to lead on
// from what was read before.
func (r *replay) take(partitions []int, pages [][]entry) (more []int, err error) {
	lost := 0
	for i, p := range partitions {
		if !r.leadsOn(p, pages[i]) {
			lost++
		}
	}
	if lost > 0 {
		return nil, fmt.Errorf("%w: in %d of the %d that were asked", ErrPositionLost, lost, len(partitions))
	}
	for i, p := range partitions {
		if err := r.applyPage(p, pages[i]); err != nil {
			return nil, err
		}
		if len(pages[i]) == pageSize {
			more = append(more, p)
		}
	}
	return more, nil
}

// leadsOn tells whether a page begins with the last entry that was read, and
// each entry names the one before it.
func (r *replay) leadsOn(partition int, page []entry) bool {
	if !r.last[partition].begins(page) {
		return false
	}
	for i := range page[1:] {
		if page[i+1].previous != page[i].at {
			return false
		}
	}
	return true
}

func (r *replay) applyPage(partition int, page []entry) error {
	for _, e := range page[1:] {
		r.last[partition] = e
		if isMark(e.text) {
			continue
		}
		consent, err := decode(e.text)
		if err != nil {
			return fmt.Errorf("the message of entry %s in partition %d is not understood: %w", e.at, partition, err)
		}
		r.apply(consent, sendgate.Place{Partition: partition, Offset: e.at})
	}
	return nil
}
