package bloom

import (
	"math"

	"github.com/bits-and-blooms/bloom/v3"
)

// sizing is how a filter is dimensioned.
type sizing struct {
	bitsPerKey float64
	hashes     int // even
}

// rate is the false-positive rate to be expected for one key. The keys that put
// half of their bits into a line are Poisson distributed; a page has its own
// share of all keys, which makes both of its lines a little fuller or emptier.
func (s sizing) rate() float64 {
	perLine := 2 * lineBits / s.bitsPerKey
	hit := lineRate(perLine, s.hashes/2)
	slope := (lineRate(perLine*1.01, s.hashes/2)/hit - 1) / 0.01
	return hit * hit * (1 + slope*slope*s.bitsPerKey/pageBits)
}

// lineRate is the probability that a line has some bits of a key that is not
// in it, where other keys, perLine of them on average, have put as many each.
func lineRate(perLine float64, bits int) (rate float64) {
	k := float64(bits)
	chance := math.Exp(-perLine) // that the line has n keys
	for n := 0.0; n < 3*perLine+100; n++ {
		// The set bits of n*k throws: their mean, and how they vary (see
		// Mitzenmacher and Upfal, "Probability and Computing", 5.3).
		unset, both := math.Pow(1-1.0/lineBits, n*k), math.Pow(1-2.0/lineBits, n*k)
		mean, variance := 1-unset, unset/lineBits+(1-1.0/lineBits)*both-unset*unset
		if mean > 0 {
			rate += chance * math.Pow(mean, k) * (1 + k*(k-1)/2*variance/(mean*mean))
		}
		chance *= perLine / (n + 1)
	}
	return rate
}

// sizeFor is the smallest sizing that has a false-positive rate for one key.
func sizeFor(rate float64) (best sizing) {
	// What the library gives a filter whose bits are anywhere is the least.
	const keys = 1 << 20
	bits, hashes := bloom.EstimateParameters(keys, rate)
	for pairs := max(1, int(hashes)/2-4); pairs <= min(maxHashes, int(hashes)+2)/2; pairs++ {
		low, high := float64(bits)/keys*0.9, 4*float64(bits)/keys
		for range 40 {
			if s := (sizing{(low + high) / 2, 2 * pairs}); s.rate() > rate {
				low = s.bitsPerKey
			} else {
				high = s.bitsPerKey
			}
		}
		if best.hashes == 0 || high < best.bitsPerKey {
			best = sizing{high, 2 * pairs}
		}
	}
	return best
}

// sizeWithin is the best sizing of a given number of bits for each key.
func sizeWithin(bitsPerKey float64) (best sizing) {
	most := min(maxHashes/2, int(math.Ceil(bitsPerKey*math.Ln2/2)))
	for pairs := max(1, most-5); pairs <= most; pairs++ {
		if s := (sizing{bitsPerKey, 2 * pairs}); best.hashes == 0 || s.rate() < best.rate() {
			best = s
		}
	}
	return best
}

// layout is how many shards there are, and how many pages each has, for so many
// keys.
func (s sizing) layout(keys int64) (shards int, pages int) {
	total := max(1, math.Ceil(float64(keys)*s.bitsPerKey/pageBits))
	shards = 1
	for shards < 1<<shardBits && float64(shards)*shardPages < total {
		shards *= 2
	}
	return shards, int(math.Ceil(total / float64(shards)))
}

// fitting is how many bytes of words a memory has room for, in whole pages of
// equal shards.
func fitting(memory int64) float64 {
	pages := max(0, memory/pageBytes)
	shards, _ := sizing{bitsPerKey: pageBits}.layout(pages)
	return float64(pages/int64(shards)*int64(shards)) * pageBytes
}

// shardPages is about how large a shard is at the most: it should stay in a
// core's cache, 512 KiB of it, while its keys are put in.
const shardPages = 512 << 10 / pageBytes

// A check probes the keys of the hold and of the setting: it is rejected by
// mistake if either is hit.
func wholeCheck(oneKey float64) float64 { return oneKey * (2 - oneKey) }

// oneKeyOf is the inverse of wholeCheck.
func oneKeyOf(wholeCheck float64) float64 { return 1 - math.Sqrt(1-wholeCheck) }
