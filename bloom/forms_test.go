package bloom

import (
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"testing"

	"github.com/bits-and-blooms/bloom/v3"
)

// form is a way of placing a key's bits in a bit set of the library's.
type form struct {
	name string
	// bitsPerKey and hashes are those of one false positive in 2,000 keys, and
	// of one in two million.
	bitsPerKey [2]float64
	hashes     [2]int
	has        func(f *formed, key uint64) bool
	put        func(f *formed, key uint64)
}

// formed is a filter of a form.
type formed struct {
	set    *bloom.BloomFilter
	hashes int
}

// forms are what the filter was chosen from, with the filter itself.
var forms = []form{
	{name: "anywhere", bitsPerKey: [2]float64{15.9, 30.2}, hashes: [2]int{11, 21},
		has: func(f *formed, key uint64) bool { return f.has(key, uint64(f.set.Cap()), 0) },
		put: func(f *formed, key uint64) { f.put(key, uint64(f.set.Cap()), 0) }},
	{name: "anywhere in a shard of 512 KiB", bitsPerKey: [2]float64{15.9, 30.2}, hashes: [2]int{11, 21},
		has: func(f *formed, key uint64) bool { return f.has(key, shardBits512, f.block(key, shardBits512)) },
		put: func(f *formed, key uint64) { f.put(key, shardBits512, f.block(key, shardBits512)) }},
	{name: "one line", bitsPerKey: [2]float64{17.4, 42.4}, hashes: [2]int{9, 16},
		has: func(f *formed, key uint64) bool { return f.has(key, lineBits, f.block(key, lineBits)) },
		put: func(f *formed, key uint64) { f.put(key, lineBits, f.block(key, lineBits)) }},
}

const shardBits512 = 512 << 10 * 8

// block is where the block of a key begins, of blocks of so many bits.
func (f *formed) block(key, size uint64) uint64 {
	i, _ := bits.Mul64(mix(key), uint64(f.set.Cap())/size)
	return i * size
}

func (f *formed) has(key, size, begin uint64) bool {
	set, state := f.set.BitSet(), mix(key)
	for range f.hashes {
		state += step
		bit, _ := bits.Mul64(mix(state), size)
		if !set.Test(uint(begin + bit)) {
			return false
		}
	}
	return true
}

func (f *formed) put(key, size, begin uint64) {
	set, state := f.set.BitSet(), mix(key)
	for range f.hashes {
		state += step
		bit, _ := bits.Mul64(mix(state), size)
		set.Set(uint(begin + bit))
	}
}

// BenchmarkForms finds keys, and measures how often others are found, in the
// forms that a filter might have. SENDGATE_BENCH_KEYS is how many keys there
// are, 10 million by default.
func BenchmarkForms(b *testing.B) {
	n := 10_000_000
	if keys, err := strconv.Atoi(os.Getenv("SENDGATE_BENCH_KEYS")); err == nil {
		n = keys
	}
	for i, rate := range []float64{5e-4, 5e-7} {
		for _, form := range forms {
			var f *formed
			b.Run(fmt.Sprintf("%g/%s", rate, form.name), func(b *testing.B) {
				if f == nil {
					words := int(float64(n)*form.bitsPerKey[i]) / shardBits512 * shardBits512 / wordBits
					f = &formed{bloom.From(make([]uint64, words), 1), form.hashes[i]}
					for key := range uint64(n) {
						form.put(f, mix(key))
					}
				}
				find(b, n, len(f.set.BitSet().Words()), func(key uint64) bool { return form.has(f, key) })
			})
		}
		var f *filter
		b.Run(fmt.Sprintf("%g/two lines of a page", rate), func(b *testing.B) {
			if f == nil {
				f = paged(b, n, rate)
			}
			find(b, n, len(f.words), f.has)
		})
	}
}

// paged is the filter that is used, of so many keys.
func paged(b *testing.B, n int, rate float64) *filter {
	b.Helper()
	all := &hoard{out: &spill{most: int64(n)}}
	feed := all.feeder()
	for key := range uint64(n) {
		if err := feed.put(mix(key)); err != nil {
			b.Fatal(err)
		}
	}
	if err := feed.flush(); err != nil {
		b.Fatal(err)
	}
	d, err := newDraft(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.file.Close() }()
	h, err := d.fill(b.Context(), 0, all, sizeFor(rate), 0)
	if err != nil {
		b.Fatal(err)
	}
	words := make([]uint64, h.Words)
	if _, err := d.file.ReadAt(bytesOf(words), wordsBegin); err != nil {
		b.Fatal(err)
	}
	return newFilter(0, h.Hashes, h.Shards, words)
}

// find looks for keys that are there, and for two million that are not.
func find(b *testing.B, n, words int, has func(uint64) bool) {
	b.Helper()
	b.ResetTimer()
	found := true
	for i := uint64(0); b.Loop(); i++ {
		found = has(mix(i*7919%uint64(n))) && found
	}
	b.StopTimer()
	if !found {
		b.Fatal("missing")
	}
	hits := 0
	for i := range uint64(2_000_000) {
		if has(mix(uint64(n) + i)) {
			hits++
		}
	}
	b.ReportMetric(float64(hits)/2, "hits/million")
	b.ReportMetric(float64(words)*wordBits/float64(n), "bits/key")
}
