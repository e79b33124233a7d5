package bloom

import (
	"slices"
	"sync"
)

const (
	// bucketBits is how many upper bits of a key tell its bucket.
	bucketBits = 8
	// lotKeys is how many keys of a bucket are handed on at once.
	lotKeys = 512
)

// hoard keeps keys on their way into a filter, in buckets by their upper bits.
// Keys beyond a bound are kept in a file, those of a bucket together: what a
// filter is made of is a bucket at a time. It is safe for concurrent use until
// its keys are read.
type hoard struct {
	out     *spill
	buckets [1 << bucketBits]bucket
}

// bucket is the keys of some upper bits.
type bucket struct {
	mu   sync.Mutex
	lots [][]uint64 // in memory
	out  []extent   // in the file
	keys int64      // in both
}

// feeder hands keys on to a hoard. It is one goroutine's, and has as much as a
// megabyte of keys that the hoard does not know of.
type feeder struct {
	to   *hoard
	lots [1 << bucketBits][]uint64
}

func (h *hoard) feeder() *feeder { return &feeder{to: h} }

// put takes a key.
func (f *feeder) put(key uint64) error {
	i := key >> (64 - bucketBits)
	lot := f.lots[i]
	if lot == nil {
		lot = f.to.out.lot()
	}
	lot = append(lot, key)
	f.lots[i] = lot
	if len(lot) < lotKeys {
		return nil
	}
	f.lots[i] = nil
	return f.to.take(int(i), lot)
}

// flush hands on all that is left.
func (f *feeder) flush() error {
	for i, lot := range f.lots {
		if len(lot) > 0 {
			// A copy of its size: most of the keys of a small filter come so.
			if err := f.to.take(i, slices.Clone(lot)); err != nil {
				return err
			}
			f.lots[i] = nil
		}
	}
	return nil
}

// take takes a lot, and puts its bucket out if there is too much in memory.
func (h *hoard) take(i int, lot []uint64) error {
	b := &h.buckets[i]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lots = append(b.lots, lot)
	b.keys += int64(len(lot))
	if h.out.held.Add(int64(len(lot))) <= h.out.most {
		return nil
	}
	put := int64(0)
	for _, lot := range b.lots {
		put += int64(len(lot))
	}
	at, err := h.out.write(b.lots, put)
	if err != nil {
		return err
	}
	b.out, b.lots = append(b.out, at), b.lots[:0]
	h.out.held.Add(-put)
	return nil
}

// count is how many keys there are.
func (h *hoard) count() (n int64) {
	for i := range h.buckets {
		n += h.buckets[i].keys
	}
	return n
}

// read appends the keys of some buckets, which come one after the other.
func (h *hoard) read(keys []uint64, buckets []bucket) (_ []uint64, err error) {
	for i := range buckets {
		for _, e := range buckets[i].out {
			if keys, err = h.out.read(keys, e); err != nil {
				return nil, err
			}
		}
		for _, lot := range buckets[i].lots {
			keys = append(keys, lot...)
		}
	}
	return keys, nil
}

// byShard reads the keys of buckets whose shards are from first on and before
// last, and puts those of a shard together. ends are where those of each end.
func (h *hoard) byShard(buckets []bucket, shift uint, first, last int) (keys []uint64, ends []int, err error) {
	n := int64(0)
	for i := range buckets {
		n += buckets[i].keys
	}
	keys, err = h.read(make([]uint64, 0, n), buckets)
	if err != nil || last-first == 1 {
		return keys, []int{len(keys)}, err
	}
	ends = make([]int, last-first)
	for _, key := range keys {
		ends[int(key>>shift)-first]++
	}
	begin := 0
	for i, n := range ends { // each is where a shard begins, and moves to where it ends
		ends[i] = begin
		begin += n
	}
	sorted := make([]uint64, len(keys))
	for _, key := range keys {
		end := &ends[int(key>>shift)-first]
		sorted[*end] = key
		*end++
	}
	return sorted, ends, nil
}
