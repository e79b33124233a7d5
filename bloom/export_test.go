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
	end := preludeSize + int(binary.LittleEndian.Uint32(file[12:]))
	var h Header
	if end > len(file) || jsonv2.Unmarshal(file[preludeSize:end], &h) != nil || h.validate() != nil {
		return
	}
	begin := end + tableEntry*(h.OptOuts.Shards+h.OptIns.Shards)
	words := int(roundUp(int64(begin)))
	if words > len(file) {
		return
	}
	for at := end; at < begin; at += tableEntry {
		n := binary.LittleEndian.Uint64(file[at:])
		if n > uint64(len(file)-words)/8 {
			break
		}
		binary.LittleEndian.PutUint64(file[at+8:], xxhash.Sum64(file[words:words+int(n)*8]))
		words += int(n) * 8
	}
	binary.LittleEndian.PutUint64(file[24:], xxhash.Sum64(file[preludeSize:begin]))
}

// Use puts a snapshot into use that is covered as of now.
func Use(l *Live, s *Snapshot) {
	l.standing.Store(&standing{snapshot: s, covered: true, epoch: l.overlay.Epoch(), watch: &watch{position: s.header.Position}})
}
