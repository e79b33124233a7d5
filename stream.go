package sendgate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Offset is the id of an entry of a change stream, as Redis gives it: rising
// along the stream, beginning with the milliseconds of the Redis' own clock.
// The zero Offset stands before every entry.
type Offset struct{ Millis, Seq uint64 }

// ParseOffset reads an offset in the one form that String writes.
func ParseOffset(id string) (o Offset, err error) {
	millis, seq, _ := strings.Cut(id, "-")
	o.Millis, err = strconv.ParseUint(millis, 10, 64)
	if err == nil {
		o.Seq, err = strconv.ParseUint(seq, 10, 64)
	}
	if err != nil || o.String() != id {
		return Offset{}, fmt.Errorf("%q is not the id of a stream's entry", Clip(id))
	}
	return o, nil
}

// String is the offset as Redis writes it, such as 1764500000000-0.
func (o Offset) String() string {
	return strconv.FormatUint(o.Millis, 10) + "-" + strconv.FormatUint(o.Seq, 10)
}

// Time is what the Redis' clock said when the entry was made, to the
// millisecond.
func (o Offset) Time() time.Time { return time.UnixMilli(int64(o.Millis)) }

// After tells whether o stands later in a stream than p.
func (o Offset) After(p Offset) bool {
	return cmp.Or(cmp.Compare(o.Millis, p.Millis), cmp.Compare(o.Seq, p.Seq)) > 0
}

// MarshalText writes the offset as String does.
func (o Offset) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (o *Offset) UnmarshalText(text []byte) (err error) {
	*o, err = ParseOffset(string(text))
	return err
}

// Announcement is a user's state as the store had it: what every gate is told,
// and what the record cache holds from then on.
type Announcement struct {
	Consent Consent
	Record  []byte // the encoded preferences that the consent is from
	// ReadAt is what the clock of the user's Redis said before they were read
	// from the store, or were written there.
	ReadAt time.Time
}

// Place is where a change stands: in which partition's stream, after which
// entry. The zero Place is not known.
type Place struct {
	Partition int
	Offset    Offset
}

// Position is one place in every partition's stream: an entry that was put
// there as a mark. Whatever was announced before the marks is older than the
// position.
type Position struct {
	Token   string   `json:"token"`   // the content of the marks, which no other position has
	Offsets []Offset `json:"offsets"` // of the marks, by partition
}

// Covers tells whether a place is known and not after the position.
func (p Position) Covers(at Place) bool {
	return at.Offset != Offset{} && at.Partition < len(p.Offsets) && !at.Offset.After(p.Offsets[at.Partition])
}
