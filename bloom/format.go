package bloom

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
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
//	 24  xxHash64 of the header and the tables   uint64
//	 32  zeros
//	 56  xxHash64 of the 56 bytes before         uint64
//	header    JSON, a Header
//	tables    of the shards of both filters, opt-outs first: words, xxHash64 of them
//	zeros     up to a multiple of 4096
//	words     of both filters, shard by shard
const (
	magic         = "SENDGATE"
	formatVersion = 1
	preludeSize   = 64
	pageSize      = 4096
	tableEntry    = 16
	maxHeader     = 16 << 20
)

// prelude is the fixed beginning of a file.
type prelude struct {
	headerLength uint32
	fileLength   uint64
	metaSum      uint64 // of header and tables
}

func (p prelude) encode() []byte {
	b := make([]byte, 0, preludeSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, p.headerLength)
	b = binary.LittleEndian.AppendUint64(b, p.fileLength)
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
	p.metaSum = binary.LittleEndian.Uint64(data[24:])
	if !bytes.Equal(p.encode(), data[:preludeSize]) {
		return p, refuse("its first bytes are damaged")
	}
	return p, nil
}

// encodeTables writes how many words each shard has, and their checksum.
func encodeTables(filters ...[][]uint64) (tables []byte) {
	for _, shards := range filters {
		for _, words := range shards {
			tables = binary.LittleEndian.AppendUint64(tables, uint64(len(words)))
			tables = binary.LittleEndian.AppendUint64(tables, xxhash.Sum64(bytesOf(words)))
		}
	}
	return tables
}

// write writes a snapshot file.
func write(w io.Writer, h *Header, optOuts, optIns [][]uint64) (int64, error) {
	header, err := jsonv2.Marshal(h, jsonv2.Deterministic(true))
	if err != nil {
		return 0, err
	}
	meta := slices.Concat(header, encodeTables(optOuts, optIns))
	padded := roundUp(int64(preludeSize + len(meta)))
	length := padded + (h.OptOuts.Words+h.OptIns.Words)*8
	p := prelude{headerLength: uint32(len(meta) - tableEntry*(len(optOuts)+len(optIns))), fileLength: uint64(length), metaSum: xxhash.Sum64(meta)}
	out := &counting{w: w}
	out.write(p.encode())
	out.write(meta)
	out.write(make([]byte, padded-out.n))
	for _, shards := range [][][]uint64{optOuts, optIns} {
		for _, words := range shards {
			out.write(bytesOf(words))
		}
	}
	return out.n, out.err
}

// counting writes until the first error.
type counting struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counting) write(data []byte) {
	if c.err == nil {
		var n int
		n, c.err = c.w.Write(data)
		c.n += int64(n)
	}
}

func roundUp(n int64) int64 { return (n + pageSize - 1) / pageSize * pageSize }

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
	h, tables, words, err := p.meta(data)
	if err != nil {
		return nil, err
	}
	optOuts, tables, words, err := shardsOf(&h.OptOuts, "opt_outs", tables, words)
	if err != nil {
		return nil, err
	}
	optIns, tables, words, err := shardsOf(&h.OptIns, "opt_ins", tables, words)
	if err != nil {
		return nil, err
	}
	if len(tables)+len(words) > 0 {
		return nil, refuse("it has more than its header says")
	}
	s := newSnapshot(*h, optOuts, optIns, int64(len(data)))
	if s.optOuts.rate() != h.OptOuts.Rate || s.optIns.rate() != h.OptIns.Rate {
		return nil, refuse("its bits make another false-positive rate than its header states")
	}
	return s, s.checkCanaries()
}

// meta reads the header, and finds the tables and the words.
func (p prelude) meta(data []byte) (h *Header, tables, words []byte, err error) {
	end := int64(preludeSize) + int64(p.headerLength)
	if p.headerLength > maxHeader || end > int64(len(data)) {
		return nil, nil, nil, refuse("its header has %d bytes", p.headerLength)
	}
	h = new(Header)
	if err := jsonv2.Unmarshal(data[preludeSize:end], h, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, nil, nil, refuse("its header is damaged: %w", err)
	}
	if err := h.validate(); err != nil {
		return nil, nil, nil, err
	}
	begin := end + tableEntry*int64(h.OptOuts.Shards+h.OptIns.Shards)
	padded := roundUp(begin)
	switch {
	case padded > int64(len(data)):
		return nil, nil, nil, refuse("it ends before its words")
	case xxhash.Sum64(data[preludeSize:begin]) != p.metaSum:
		return nil, nil, nil, refuse("its header or its tables are damaged")
	}
	if len(bytes.Trim(data[begin:padded], "\x00")) > 0 {
		return nil, nil, nil, refuse("it has something where nothing belongs")
	}
	return h, data[end:begin], data[padded:], nil
}

// shardsOf takes a filter's shards off the front of tables and words, and
// checks them.
func shardsOf(h *FilterHeader, name string, tables, words []byte) (shards [][]uint64, moreTables, moreWords []byte, err error) {
	shards = make([][]uint64, h.Shards)
	total := int64(0)
	for i := range shards {
		n, sum := binary.LittleEndian.Uint64(tables), binary.LittleEndian.Uint64(tables[8:])
		tables = tables[tableEntry:]
		if n == 0 || n > uint64(len(words)/8) {
			return nil, nil, nil, refuse("shard %d of %s has %d words", i, name, n)
		}
		shard := words[:n*8]
		words = words[n*8:]
		total += int64(n)
		if xxhash.Sum64(shard) != sum {
			return nil, nil, nil, refuse("shard %d of %s is damaged", i, name)
		}
		shards[i] = wordsOf(shard)
	}
	if total != h.Words {
		return nil, nil, nil, refuse("%s has %d words, and its header says %d", name, total, h.Words)
	}
	return shards, tables, words, nil
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
