package bloom

import (
	"math"
	"math/bits"

	"github.com/bits-and-blooms/bloom/v3"
)

// A filter is a bit set in shards of equal size. A shard consists of pages, and
// a page of lines, which are what a processor's cache is filled by. A key has a
// shard, which is its user's and does not depend on the salt; a page of it; and
// in that page two lines, with half of the key's bits in each. A lookup costs
// two lines from memory, which are asked for at the same time, and the address
// of one page, where a Bloom filter whose bits are anywhere takes one line for
// every bit.
//
// Lines fill unevenly, which costs bits: for half a false positive in a million
// 33 of them for each key instead of 30, for half of one in a thousand 16.2
// instead of 15.8. With one line they would be 42 and 17.4. (Putze, Sanders,
// Singler, "Cache-, hash- and space-efficient Bloom filters", 2007, describes
// filters of one block.)
//
// The bits of a key are the outputs of a generator that starts from key and
// salt. Taking them as multiples of two hashes, as is usual, would put a floor
// under the false-positive rate of a line: of m bits there are only about m²
// such sequences.
const (
	wordBits  = 64
	lineWords = 8
	lineBits  = lineWords * wordBits
	pageLines = 64
	pageWords = pageLines * lineWords
	pageBytes = pageWords * 8
	pageBits  = pageWords * wordBits
)

// filter is a Bloom filter of keys.
type filter struct {
	salt   uint64
	pairs  int    // of bits that a key has, one of each in either line
	shift  uint   // right shift that leaves a key's shard
	pages  uint64 // of a shard
	shards int
	words  []uint64
}

// maxHashes is as many bits for a key as a rate of 1e-18 would take.
const maxHashes = 60

// newFilter makes a filter of words, of which every shard has an equal number
// of whole pages. The number of shards is a power of two, at most 1<<shardBits;
// that of hashes is even.
func newFilter(salt uint64, hashes, shards int, words []uint64) *filter {
	return &filter{
		salt: salt, pairs: hashes / 2, shift: uint(64 - bits.TrailingZeros(uint(shards))),
		pages: uint64(len(words) / shards / pageWords), shards: shards, words: words,
	}
}

// line is what is read from memory at once.
type line = [lineWords]uint64

// probe is a lookup that has begun: both of its lines have been asked for.
type probe struct {
	a, b  *line
	state uint64
	bits  uint64 // what is left of the generator's last output
	first uint64 // 1 if the first pair of bits is set, or else 0
}

const (
	pairBits       = 18 // that it takes to choose a pair of bits
	pairsPerOutput = 3
)

// pair tells whether the bits of a pair are set, by 1 or 0.
func pair(a, b *line, choice uint64) uint64 {
	return a[choice>>6&7] >> (choice & 63) & (b[choice>>15&7] >> (choice >> 9 & 63)) & 1
}

// place is where a key's lines begin, in words from the beginning of its
// shard, and the state of its generator.
func (f *filter) place(key uint64) (a, b int, state uint64) {
	state = mix(key ^ f.salt)
	page, low := bits.Mul64(state, f.pages)
	// What is below the page is as good as another output.
	first := low >> (64 - 6)
	second := first ^ (1 + low<<6>>32*(pageLines-1)>>32)
	at := page * pageWords
	return int(at + first*lineWords), int(at + second*lineWords), state
}

// begin begins the lookup of a key. Nothing in it waits for memory, so that
// several may be under way.
func (f *filter) begin(key uint64) (p probe) {
	a, b, state := f.place(key)
	shard := int(key>>f.shift) * int(f.pages*pageWords)
	p.a, p.b = (*line)(f.words[shard+a:]), (*line)(f.words[shard+b:])
	p.state = state + step
	choice := mix(p.state)
	p.bits = choice >> pairBits
	p.first = pair(p.a, p.b, choice)
	return p
}

// end ends the lookup of a key of so many pairs.
func (p *probe) end(pairs int) bool {
	if p.first == 0 {
		return false
	}
	for i, choice := 1, p.bits; i < pairs; i++ {
		if i%pairsPerOutput == 0 {
			p.state += step
			choice = mix(p.state)
		}
		if pair(p.a, p.b, choice) == 0 {
			return false
		}
		choice >>= pairBits
	}
	return true
}

// has tells whether a key is in the filter, false positives included.
func (f *filter) has(key uint64) bool {
	p := f.begin(key)
	return p.end(f.pairs)
}

// fill puts keys of one shard into the words of the shard, which are zeros.
func (f *filter) fill(words []uint64, keys []uint64) {
	set := bloom.From(words, uint(2*f.pairs)).BitSet()
	for _, key := range keys {
		a, b, state := f.place(key)
		atA, atB := uint(a*wordBits), uint(b*wordBits)
		choice := uint64(0)
		for i := range f.pairs {
			if i%pairsPerOutput == 0 {
				state += step
				choice = mix(state)
			}
			set.Set(atA + uint(choice&(lineBits-1)))
			set.Set(atB + uint(choice>>9&(lineBits-1)))
			choice >>= pairBits
		}
	}
}

// shard is the words of one shard.
func (f *filter) shard(i int) []uint64 {
	n := len(f.words) / f.shards
	return f.words[i*n : (i+1)*n]
}

// hits is the probability that a pair of lines has all bits of a key, by how
// many bits are set in a line, which is what has to be squared for both.
type hits [lineBits + 1]float64

func newHits(pairs int) (h hits) {
	for n := range h {
		h[n] = math.Pow(float64(n)/lineBits, float64(pairs))
	}
	return h
}

// rate is the false-positive rate for one key of a random user of a shard, from
// the bits that are set: the mean over all pairs of lines of a page, over all
// pages.
func (h *hits) rate(shard []uint64) float64 {
	total := 0.0
	for page := 0; page < len(shard); page += pageWords {
		sum, squares := 0.0, 0.0
		for at := page; at < page+pageWords; at += lineWords {
			n := 0
			for _, word := range (*line)(shard[at:]) {
				n += bits.OnesCount64(word)
			}
			sum += h[n]
			squares += h[n] * h[n]
		}
		total += (sum*sum - squares) / (pageLines * (pageLines - 1))
	}
	return total / float64(len(shard)/pageWords)
}
