package bloom

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/sendgate/sendgate"
)

// ErrRefused is the refusal of a snapshot that is damaged, or not for whoever
// has read it. The text says why.
var ErrRefused = errors.New("the snapshot is refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// Header says what a snapshot is.
type Header struct {
	Namespace  string            `json:"namespace"`
	Generation int64             `json:"generation"` // of two snapshots of a namespace the higher one is newer
	BuiltAt    time.Time         `json:"built_at"`   // by the builder's clock
	Position   sendgate.Position `json:"position"`   // every change that was announced before is in it
	Covered    []Covered         `json:"covered"`    // the settings whose opt-ins it has
	Keys       Counts            `json:"keys"`
	Hashing    string            `json:"hashing"`
	Salt       uint64            `json:"salt,string"`
	Canaries   int               `json:"canaries"` // keys of nobody that must be found, of each kind
	OptOuts    FilterHeader      `json:"opt_outs"` // the filter of all kinds of keys but opt-ins
	OptIns     FilterHeader      `json:"opt_ins"`
}

// Covered is a setting whose opt-ins a snapshot has.
type Covered struct {
	Topic   string `json:"topic"`
	Channel string `json:"channel"`
}

// Counts is how many keys of each kind were put in, those that came twice
// counted twice.
type Counts struct {
	Holds     int64 `json:"holds"`
	HardHolds int64 `json:"hard_holds"`
	OptOuts   int64 `json:"opt_outs"`
	OptIns    int64 `json:"opt_ins"`
}

// Rejecting is how many keys there are that may reject a check.
func (c Counts) Rejecting() int64 { return c.Holds + c.HardHolds + c.OptOuts }

// FilterHeader says how a filter is dimensioned.
type FilterHeader struct {
	Shards int     `json:"shards"`
	Hashes int     `json:"hashes"`              // the bits of a key, an even number
	Keys   int64   `json:"keys"`                // that were put in, canaries included
	Words  int64   `json:"words"`               // whole pages, and as many in every shard
	Rate   float64 `json:"false_positive_rate"` // for one key, from the bits that are set
}

// FalsePositiveRate is how often a check of somebody who has not opted out is
// rejected by mistake, from the bits that are set: the probability that one of
// the two keys that a check probes is hit.
func (h *Header) FalsePositiveRate() float64 { return wholeCheck(h.OptOuts.Rate) }

// The bounds of what is read from a header. They are beyond what is built.
const (
	maxPartitions = 1 << 16
	maxCanaries   = 1 << 10
	maxWords      = 1 << 40
)

func (h *Header) validate() error {
	switch {
	case h.Hashing != hashing:
		return refuse("its keys are hashed by %q, and this program hashes by %q", sendgate.Clip(h.Hashing), hashing)
	case h.Namespace == "" || h.Generation < 1:
		return refuse("it has no namespace or no generation")
	case h.Position.Token == "" || len(h.Position.Offsets) == 0 || len(h.Position.Offsets) > maxPartitions:
		return refuse("its position is of %d partitions, or has no token", len(h.Position.Offsets))
	case h.Canaries < 1 || h.Canaries > maxCanaries:
		return refuse("it has %d canaries", h.Canaries)
	}
	if err := h.OptOuts.validate("opt_outs"); err != nil {
		return err
	}
	return h.OptIns.validate("opt_ins")
}

func (h *FilterHeader) validate(name string) error {
	if h.Shards < 1 || h.Shards > 1<<shardBits || bits.OnesCount(uint(h.Shards)) != 1 {
		return refuse("%s has %d shards", name, h.Shards)
	}
	if h.Hashes < 2 || h.Hashes > maxHashes || h.Hashes%2 != 0 {
		return refuse("%s has %d hashes", name, h.Hashes)
	}
	if h.Words < 1 || h.Words > maxWords || h.Words%(int64(h.Shards)*pageWords) != 0 {
		return refuse("%s has %d words", name, h.Words)
	}
	return nil
}

// Fits says why a snapshot is not for an installation, or nil.
func (h *Header) Fits(namespace string, partitions int) error {
	if h.Namespace != namespace {
		return refuse("it is of namespace %q, not %q", sendgate.Clip(h.Namespace), namespace)
	}
	if len(h.Position.Offsets) != partitions {
		return refuse("it was built for a store of %d partitions, not %d", len(h.Position.Offsets), partitions)
	}
	return nil
}
