package bloom

import (
	"math/bits"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// bucketBits is how many upper bits of a key tell its bucket.
const bucketBits = 8

// buckets are keys on their way into a filter, by their upper bits. Several are
// worked on at the same time.
type buckets [1 << bucketBits][]uint64

func (b *buckets) put(key uint64) {
	at := &b[key>>(64-bucketBits)]
	*at = append(*at, key)
}

// take takes the keys of others, which are empty afterwards.
func (b *buckets) take(o *buckets) {
	for i := range b {
		if len(b[i]) == 0 {
			b[i] = o[i]
		} else {
			b[i] = append(b[i], o[i]...)
		}
		o[i] = nil
	}
}

// tidy sorts the keys and drops those that came twice.
func (b *buckets) tidy() {
	inParallel(len(b), func(i int) {
		slices.Sort(b[i])
		b[i] = slices.Compact(b[i])
	})
}

func (b *buckets) count() (n int64) {
	for _, keys := range b {
		n += int64(len(keys))
	}
	return n
}

// shardBytes is about how large a shard is: it should stay in a core's cache
// while its keys are put in.
const shardBytes = 512 << 10

// fill makes a filter of keys that are tidy.
func (b *buckets) fill(size sizing, salt uint64) (shards [][]uint64, header FilterHeader) {
	header = FilterHeader{Hashes: size.hashes, Keys: b.count()}
	want := uint64(float64(header.Keys)*size.bitsPerKey/8) / shardBytes
	shift := uint(64 - min(shardBits, bits.Len64(want)))
	shards = make([][]uint64, 1<<(64-shift))
	sizes := make([]int, len(shards))
	for _, keys := range b {
		for _, key := range keys {
			sizes[key>>shift]++
		}
	}
	for i, n := range sizes {
		shards[i] = make([]uint64, size.words(n))
		header.Words += int64(len(shards[i]))
	}
	f := newFilter(salt, size.hashes, shards)
	// Where shards are fewer than buckets, all buckets of a shard are one's.
	parts := min(len(shards), len(b))
	inParallel(parts, func(part int) {
		for _, keys := range b[part*len(b)/parts : (part+1)*len(b)/parts] {
			for _, key := range keys {
				f.add(key)
			}
		}
	})
	header.Shards, header.Rate = len(shards), f.rate()
	return shards, header
}

// inParallel calls f for 0 to n-1, as many at a time as there are processors.
func inParallel(n int, f func(i int)) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error { f(i); return nil })
	}
	_ = group.Wait() // no error
}
