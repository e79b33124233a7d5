package bloom

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"
)

// draft is a snapshot file that is being written: the words of one filter, of
// the other, and what is said of them. Of the words it has a shard in memory at
// a time.
type draft struct {
	file *os.File
	sums [2][]uint64 // of the shards that are in it
	size [2]int64    // of the words, in bytes
}

func newDraft(dir string) (*draft, error) {
	file, err := nameless(dir)
	if err != nil {
		return nil, fmt.Errorf("write the filter: %w", err)
	}
	return &draft{file: file}, nil
}

// fill writes the words of filter i, 0 or 1, made of all keys of a hoard. It may
// be done again with another size, before that of 1.
func (d *draft) fill(ctx context.Context, i int, keys *hoard, size sizing, salt uint64) (FilterHeader, error) {
	shards, pages := size.layout(keys.count())
	h := FilterHeader{Hashes: size.hashes, Shards: shards, Keys: keys.count(), Words: int64(shards) * int64(pages) * pageWords}
	d.sums[i], d.size[i] = make([]uint64, shards), h.Words*8
	w := &writer{
		draft: d, sums: d.sums[i], at: wordsBegin, pages: pages, hit: newHits(size.hashes / 2), rates: make([]float64, shards),
		keys: keys, form: newFilter(salt, size.hashes, shards, nil),
	}
	w.form.pages = uint64(pages)
	if i == 1 {
		w.at += d.size[0]
	}
	// Where shards are fewer than buckets, all buckets of a shard are one's.
	parts := min(shards, len(keys.buckets))
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for part := range parts {
		group.Go(func() error {
			if running.Err() != nil {
				return running.Err()
			}
			return w.part(part, parts)
		})
	}
	if err := group.Wait(); err != nil {
		return h, err
	}
	for _, rate := range w.rates {
		h.Rate += rate
	}
	h.Rate /= float64(shards)
	return h, nil
}

// writer writes the shards of one filter.
type writer struct {
	draft *draft
	keys  *hoard
	form  *filter // has no words
	pages int
	at    int64 // where the words begin
	hit   hits
	sums  []uint64
	rates []float64
}

// part writes the shards of one part of all buckets.
func (w *writer) part(part, parts int) error {
	buckets := w.keys.buckets[part*len(w.keys.buckets)/parts : (part+1)*len(w.keys.buckets)/parts]
	first, last := part*len(w.sums)/parts, (part+1)*len(w.sums)/parts
	keys, ends, err := w.keys.byShard(buckets, w.form.shift, first, last)
	if err != nil {
		return err
	}
	words, begin := make([]uint64, w.pages*pageWords), 0
	for i, end := range ends {
		clear(words)
		w.form.fill(words, keys[begin:end])
		begin = end
		w.sums[first+i], w.rates[first+i] = xxhash.Sum64(bytesOf(words)), w.hit.rate(words)
		if err := w.draft.write(bytesOf(words), w.at+int64(first+i)*int64(len(words))*8); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) write(data []byte, at int64) error {
	if _, err := d.file.WriteAt(data, at); err != nil {
		return fmt.Errorf("write the filter: %w", cause(err))
	}
	return nil
}

// finish writes what is said of the words, and returns how large the file is.
func (d *draft) finish(h *Header) (int64, error) {
	at := wordsBegin + d.size[0] + d.size[1]
	meta, header, err := encodeMeta(h, d.sums[0], d.sums[1])
	if err != nil {
		return 0, err
	}
	size := at + int64(len(meta))
	p := prelude{headerLength: uint32(header), fileLength: uint64(size), headerAt: uint64(at), metaSum: xxhash.Sum64(meta)}
	if err := d.write(meta, at); err != nil {
		return 0, err
	}
	return size, d.write(p.encode(), 0)
}
