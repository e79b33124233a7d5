package bloom

import (
	"math"
	"math/bits"

	"github.com/bits-and-blooms/bloom/v3"
)

// filter is a Bloom filter of keys in shards, each sized for the keys that are
// in it. A key's shard is its user's, and does not depend on the salt; its
// bits within the shard do.
//
// The bits of a key are the outputs of a generator that starts from key and
// salt. Taking them as multiples of two hashes, as is usual, would put a floor
// under the false-positive rate of a small shard: of m bits there are only
// about m² such sequences.
type filter struct {
	salt   uint64
	hashes int
	shift  uint // right shift that leaves a key's shard
	shards []*bloom.BloomFilter
}

// maxHashes is as many as a rate of 1e-18 would take.
const maxHashes = 60

// newFilter makes a filter over shards of words, of which there must be a
// power of two, at most 1<<shardBits, none of them empty.
func newFilter(salt uint64, hashes int, shards [][]uint64) *filter {
	f := &filter{
		salt: salt, hashes: hashes, shift: uint(64 - bits.TrailingZeros(uint(len(shards)))),
		shards: make([]*bloom.BloomFilter, len(shards)),
	}
	for i, words := range shards {
		f.shards[i] = bloom.FromWithM(words, uint(len(words)*wordBits), uint(hashes))
	}
	return f
}

const wordBits = 64

// has tells whether a key is in the filter, false positives included.
func (f *filter) has(key uint64) bool {
	shard := f.shards[key>>f.shift]
	set, size := shard.BitSet(), uint64(shard.Cap())
	state := mix(key ^ f.salt)
	for range f.hashes {
		state += step
		bit, _ := bits.Mul64(mix(state), size)
		if !set.Test(uint(bit)) {
			return false
		}
	}
	return true
}

// add puts a key into the filter. Keys of one shard must be added by one
// goroutine at a time.
func (f *filter) add(key uint64) {
	shard := f.shards[key>>f.shift]
	set, size := shard.BitSet(), uint64(shard.Cap())
	state := mix(key ^ f.salt)
	for range f.hashes {
		state += step
		bit, _ := bits.Mul64(mix(state), size)
		set.Set(uint(bit))
	}
}

// rate is the filter's false-positive rate for one key of a random user, from
// the bits that are set.
func (f *filter) rate() float64 {
	sum := 0.0
	for _, shard := range f.shards {
		sum += math.Pow(float64(shard.BitSet().Count())/float64(shard.Cap()), float64(f.hashes))
	}
	return sum / float64(len(f.shards))
}

// sizing is how a filter is dimensioned.
type sizing struct {
	bitsPerKey float64
	hashes     int
}

// sizeFor is the smallest sizing that has a false-positive rate for one key:
// k = log2(1/p) hashes and k/ln 2 bits for each key (Bloom 1970; see Mitzenmacher
// and Upfal, "Probability and Computing", 5.5.3).
func sizeFor(rate float64) sizing {
	hashes := min(maxHashes, max(1, int(math.Ceil(-math.Log2(rate)))))
	// With a whole number of hashes the optimum is missed by a little: solve
	// (1 - e^(-hashes/bits))^hashes = rate for the bits.
	return sizing{-float64(hashes) / math.Log1p(-math.Pow(rate, 1/float64(hashes))), hashes}
}

// sizeWithin is the best sizing of a given number of bits for each key.
func sizeWithin(bitsPerKey float64) sizing {
	return sizing{bitsPerKey, min(maxHashes, max(1, int(math.Round(bitsPerKey*math.Ln2))))}
}

// words is how many words a shard of so many keys has.
func (s sizing) words(keys int) int {
	return max(1, int(math.Ceil(float64(keys)*s.bitsPerKey/wordBits)))
}

// A check probes the keys of the hold and of the setting: it is rejected by
// mistake if either is hit.
func wholeCheck(oneKey float64) float64 { return oneKey * (2 - oneKey) }

// oneKeyOf is the inverse of wholeCheck.
func oneKeyOf(wholeCheck float64) float64 { return 1 - math.Sqrt(1-wholeCheck) }
