package bloom

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	jsonv2 "github.com/go-json-experiment/json"
)

// A snapshot file, all numbers little-endian:
//
//	prelude   64 bytes
//	  0  magic "SENDGATE"
//	  8  format version                          uint32
//	 12  length of the header                    uint32
//	 16  length of the file                      uint64
//	 24  where the header begins                 uint64
//	 32  xxHash64 of the header and the tables   uint64
//	 40  zeros
//	 56  xxHash64 of the 56 bytes before         uint64
//	zeros     up to 4096 bytes
//	words     of both filters, opt-outs first, shard by shard
//	header    JSON, a Header
//	tables    of the shards of both filters: xxHash64 of the words
const (
	magic         = "SENDGATE"
	formatVersion = 2
	preludeSize   = 64
	wordsBegin    = pageBytes
	tableEntry    = 8
	maxHeader     = 16 << 20
)

// prelude is the fixed beginning of a file.
type prelude struct {
	headerLength uint32
	fileLength   uint64
	headerAt     uint64
	metaSum      uint64 // of header and tables
}

func (p prelude) encode() []byte {
	b := make([]byte, 0, preludeSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, p.headerLength)
	b = binary.LittleEndian.AppendUint64(b, p.fileLength)
	b = binary.LittleEndian.AppendUint64(b, p.headerAt)
	b = binary.LittleEndian.AppendUint64(b, p.metaSum)
	b = append(b, make([]byte, preludeSize-8-len(b))...)
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

func decodePrelude(data []byte) (p prelude, err error) {
	if len(data) < preludeSize || string(data[:8]) != magic {
		return p, refuse("it is not a snapshot of Sendgate's, or only the beginning of one")
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != formatVersion {
		return p, refuse("its format is version %d, and this program reads version %d", v, formatVersion)
	}
	p.headerLength = binary.LittleEndian.Uint32(data[12:])
	p.fileLength = binary.LittleEndian.Uint64(data[16:])
	p.headerAt = binary.LittleEndian.Uint64(data[24:])
	p.metaSum = binary.LittleEndian.Uint64(data[32:])
	if !bytes.Equal(p.encode(), data[:preludeSize]) {
		return p, refuse("its first bytes are damaged")
	}
	return p, nil
}

// encodeMeta is what follows on the words: the header, the length of which is
// returned too, and the tables.
func encodeMeta(h *Header, sums ...[]uint64) (meta []byte, header int, err error) {
	meta, err = jsonv2.Marshal(h, jsonv2.Deterministic(true))
	header = len(meta)
	for _, shards := range sums {
		for _, sum := range shards {
			meta = binary.LittleEndian.AppendUint64(meta, sum)
		}
	}
	return meta, header, err
}

// parse checks a whole snapshot file and makes a snapshot that refers to it:
// the file must not change.
func parse(data []byte) (*Snapshot, error) {
	if !littleEndian() {
		return nil, refuse("this machine is not little-endian")
	}
	p, err := decodePrelude(data)
	if err != nil {
		return nil, err
	}
	if p.fileLength != uint64(len(data)) {
		return nil, refuse("it has %d bytes and should have %d: it was cut off, or something was added", len(data), p.fileLength)
	}
	h, tables, err := p.meta(data)
	if err != nil {
		return nil, err
	}
	words := wordsOf(data[wordsBegin:p.headerAt])
	s := newSnapshot(*h, words[:h.OptOuts.Words], words[h.OptOuts.Words:], int64(len(data)))
	if err := s.optOuts.check(&h.OptOuts, "opt_outs", tables); err != nil {
		return nil, err
	}
	if err := s.optIns.check(&h.OptIns, "opt_ins", tables[h.OptOuts.Shards*tableEntry:]); err != nil {
		return nil, err
	}
	return s, s.checkCanaries()
}

// meta reads the header, and finds the tables. What the words are, they agree
// about.
func (p prelude) meta(data []byte) (h *Header, tables []byte, err error) {
	length, begin := uint64(len(data)), p.headerAt
	if begin < wordsBegin || begin > length || begin%pageBytes != 0 || uint64(p.headerLength) > min(maxHeader, length-begin) {
		return nil, nil, refuse("its header has %d bytes from %d on", p.headerLength, begin)
	}
	end := begin + uint64(p.headerLength)
	h = new(Header)
	if err := jsonv2.Unmarshal(data[begin:end], h, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, nil, refuse("its header is damaged: %w", err)
	}
	if err := h.validate(); err != nil {
		return nil, nil, err
	}
	switch {
	case end+uint64(tableEntry*(h.OptOuts.Shards+h.OptIns.Shards)) != length:
		return nil, nil, refuse("it does not end with its tables")
	case wordsBegin+uint64(h.OptOuts.Words+h.OptIns.Words)*8 != begin:
		return nil, nil, refuse("it has other words than its header says")
	case xxhash.Sum64(data[begin:]) != p.metaSum:
		return nil, nil, refuse("its header or its tables are damaged")
	case len(bytes.Trim(data[preludeSize:wordsBegin], "\x00")) > 0:
		return nil, nil, refuse("it has something where nothing belongs")
	}
	return h, data[end:], nil
}

// check compares every shard with its checksum, and all of them with the rate
// that is stated.
func (f *filter) check(h *FilterHeader, name string, tables []byte) error {
	hit, sum := newHits(f.pairs), 0.0
	for i := range h.Shards {
		words := f.shard(i)
		if xxhash.Sum64(bytesOf(words)) != binary.LittleEndian.Uint64(tables[i*tableEntry:]) {
			return refuse("shard %d of %s is damaged", i, name)
		}
		sum += hit.rate(words)
	}
	if sum/float64(h.Shards) != h.Rate {
		return refuse("the bits of %s make another false-positive rate than its header states", name)
	}
	return nil
}

func littleEndian() bool {
	return binary.NativeEndian.Uint16([]byte{1, 0}) == 1
}

// bytesOf looks at words as the bytes that they are in memory.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
}

// wordsOf looks at bytes as words. They are copied where they do not stand at
// a multiple of eight, which mapped memory does.
func wordsOf(data []byte) []uint64 {
	at := unsafe.Pointer(unsafe.SliceData(data))
	if uintptr(at)%8 != 0 {
		words := make([]uint64, len(data)/8)
		copy(bytesOf(words), data)
		return words
	}
	return unsafe.Slice((*uint64)(at), len(data)/8)
}
