package feed

import (
	"context"
	"slices"

	"github.com/sendgate/sendgate"
)

// cursor is how far a partition's stream has been read: up to an entry, that
// included, or the zero entry where it was empty. The zero cursor is "not read
// yet".
type cursor struct {
	entry
	read bool
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
		if f.cursors[p].read {
			known = append(known, p)
		} else {
			fresh = append(fresh, p)
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
		last, err := f.streams.last(ctx, some)
		if err != nil {
			return err
		}
		for i, p := range some {
			if last[i].at == noEntry {
				last[i] = f.mark(ctx, p)
			}
			f.cursors[p] = cursor{entry: last[i], read: true}
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
	var at sendgate.Offset
	reply, err := markScript.Run(ctx, f.streams.client, []string{f.streams.space.Stream(partition)}).StringSlice()
	if err == nil && len(reply) == 2 {
		if at, err = sendgate.ParseOffset(reply[0]); err == nil {
			return entry{at: at, text: reply[1]}
		}
	}
	f.log.Warn("a change stream is empty and could not be marked", "partition", partition, "error", err)
	return entry{}
}

// catchUp reads the streams of partitions from their cursors to their ends.
func (f *Follower) catchUp(ctx context.Context, partitions []int) error {
	from := func(p int) sendgate.Offset { return f.cursors[p].at }
	return f.streams.walk(ctx, partitions, from, func(partitions []int, pages [][]entry) (more []int, err error) {
		lost := f.findLost(partitions, pages)
		for i, p := range partitions {
			if lost[p] || f.advance(p, pages[i]) {
				more = append(more, p)
			}
		}
		return more, nil
	})
}

// findLost finds the partitions whose streams do not hold their cursors any
// more. They are reported together, as one gap, before anything is taken from
// any stream. Whatever these streams hold now is to be read from the beginning,
// and is not the newest before the end is reached.
func (f *Follower) findLost(partitions []int, pages [][]entry) map[int]bool {
	lost := map[int]bool{}
	for i, p := range partitions {
		if last := f.cursors[p]; last.at != noEntry && !last.begins(pages[i]) {
			lost[p] = true
			f.cursors[p] = cursor{read: true, gapped: true}
		}
	}
	if len(lost) > 0 {
		f.log.Warn("change streams do not hold this gate's cursors any more: something may have been missed", "partitions", len(lost))
		f.lose()
	}
	return lost
}

// advance takes the entries of a page that begins at the cursor, and tells
// whether there may be more.
func (f *Follower) advance(partition int, entries []entry) (more bool) {
	more = len(entries) == pageSize
	if last := f.cursors[partition]; last.at != noEntry {
		entries = entries[1:]
	} else if len(entries) > 0 && !f.cursors[partition].gapped {
		// A stream that was empty cannot show whether these are its first
		// entries, or the first since it was lost.
		f.gap(partition, "the change stream was empty and has entries that were not heard: something may have been missed")
		f.cursors[partition].gapped = true
	}
	for _, e := range entries {
		if last := f.cursors[partition]; e.previous != last.at && !last.gapped {
			f.gap(partition, "the change stream has lost entries: something may have been missed")
		}
		f.take(partition, e)
	}
	return more
}

func (f *Follower) gap(partition int, what string) {
	f.log.Warn(what, "partition", partition)
	f.lose()
}

// lose reports a gap. Until the streams have been read to their ends, what is
// taken from them may be old: somebody who has changed twice since would be
// known by the first of the two.
func (f *Follower) lose() {
	f.sink.SetLive(false)
	f.sink.Gap()
	f.away = true
}
