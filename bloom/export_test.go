package bloom

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/cespare/xxhash/v2"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/sendgate/sendgate"
)

// Parse is parse, for tests.
var Parse = parse

// FixedRandom is a source of random numbers that are always the same.
func FixedRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// SetNow gives an overlay another clock.
func (o *Overlay) SetNow(now func() time.Time) { o.now = now }

// Trim is trim, for tests.
func (o *Overlay) Trim(p sendgate.Position, forLong time.Duration) { o.trim(p, forLong) }

// Mend writes checksums that suit a file whose contents were changed, as far
// as they can be found.
func Mend(file []byte) {
	if len(file) < preludeSize {
		return
	}
	defer func() { binary.LittleEndian.PutUint64(file[56:], xxhash.Sum64(file[:56])) }()
	binary.LittleEndian.PutUint64(file[16:], uint64(len(file)))
	begin, length := binary.LittleEndian.Uint64(file[24:]), uint64(binary.LittleEndian.Uint32(file[12:]))
	if begin < wordsBegin || begin > uint64(len(file)) || length > uint64(len(file))-begin {
		return
	}
	var h Header
	tables := file[begin+length:]
	if jsonv2.Unmarshal(file[begin:begin+length], &h) == nil && h.validate() == nil && len(tables) == tableEntry*(h.OptOuts.Shards+h.OptIns.Shards) {
		mendTables(file[wordsBegin:begin], tables, h.OptOuts, h.OptIns)
	}
	binary.LittleEndian.PutUint64(file[32:], xxhash.Sum64(file[begin:]))
}

func mendTables(words, tables []byte, filters ...FilterHeader) {
	for _, h := range filters {
		size := int(h.Words) / h.Shards * 8
		for range h.Shards {
			if size > len(words) {
				return
			}
			binary.LittleEndian.PutUint64(tables, xxhash.Sum64(words[:size]))
			words, tables = words[size:], tables[tableEntry:]
		}
	}
}

// Use puts a snapshot into use that is covered as of now.
func Use(l *Live, s *Snapshot) {
	l.standing.Store(&standing{snapshot: s, covered: true, epoch: l.overlay.Epoch(), watch: &watch{position: s.header.Position}})
}
