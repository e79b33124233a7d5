package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	bytesize "github.com/dustin/go-humanize" //nolint:misspell // is its name
	"golang.org/x/sync/errgroup"

	"github.com/sendgate/sendgate"
)

// ErrBound is the refusal to build a filter that would reject more often by
// mistake than is allowed.
var ErrBound = errors.New("the filter would miss its false-positive bound")

// optInRate is the false-positive rate of opt-ins. One of those costs a read
// and nothing else.
const optInRate = 0.001

// growth is by how much a filter is made larger that has missed its bound.
const growth = 1.02

// measureProbes is how many users who do not exist a new filter is tried with.
const measureProbes = 200_000

// Plan says what to build.
type Plan struct {
	Namespace  string
	Generation int64 // from 1
	BuiltAt    time.Time
	Position   sendgate.Position  // taken before the keys are read
	Covered    []sendgate.Setting // the settings whose opt-ins are to be kept
	// Memory bounds the words of both filters, in bytes.
	Memory int64
	// MaxFalsePositive is the rate, of a whole check, that may not be passed;
	// AimFalsePositive is the rate that is good enough. The lowest rate between
	// the two that fits into Memory is taken.
	MaxFalsePositive, AimFalsePositive float64
}

// Built is a snapshot that has been built and is not written yet.
type Built struct {
	header          Header
	optOuts, optIns [][]uint64
	measured        float64
}

// Header says what was built.
func (b *Built) Header() *Header { return &b.header }

// Measured is the share of probes for users who do not exist that were hit.
func (b *Built) Measured() float64 { return b.measured }

// WriteTo writes the snapshot as a file.
func (b *Built) WriteTo(w io.Writer) (int64, error) {
	return write(w, &b.header, b.optOuts, b.optIns)
}

// Build makes a snapshot of keys, which come in any number of segments that
// are read at the same time. The first error of any of them ends it. Besides
// the plan's Memory it takes about ten bytes for each key, and reads no more
// keys than could be kept. The error is ErrBound if the keys do not fit into
// the memory at the highest rate that is allowed.
func Build(ctx context.Context, p Plan, segments ...iter.Seq2[Key, error]) (*Built, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	collected, counts, err := p.collect(ctx, segments)
	if err != nil {
		return nil, err
	}
	outs, ins := &collected.outs, &collected.ins
	outs.tidy()
	ins.tidy()
	sizeIns := sizeFor(optInRate)
	taken := int64(sizeIns.bitsPerKey*float64(ins.count())) / 8
	sizeOuts, err := p.size(outs.count(), taken)
	if err != nil {
		return nil, err
	}
	b := &Built{header: Header{
		Namespace: p.Namespace, Generation: p.Generation, BuiltAt: p.BuiltAt.UTC(), Position: p.Position, Keys: counts,
		Hashing: hashing, Salt: rand.Uint64(), Canaries: canaries, Covered: make([]Covered, len(p.Covered)),
	}}
	for i, s := range p.Covered {
		b.header.Covered[i] = Covered(s)
	}
	b.optOuts, b.header.OptOuts = outs.fill(sizeOuts, b.header.Salt)
	for b.header.FalsePositiveRate() > p.MaxFalsePositive && ctx.Err() == nil {
		// Chance has set more bits than usual, which matters where there are few.
		sizeOuts.bitsPerKey *= growth
		if float64(p.Memory-taken)*8 < sizeOuts.bitsPerKey*float64(outs.count()) {
			break
		}
		b.optOuts, b.header.OptOuts = outs.fill(sizeOuts, b.header.Salt)
	}
	b.optIns, b.header.OptIns = ins.fill(sizeIns, b.header.Salt)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b, b.check(p)
}

func (p *Plan) validate() error {
	switch {
	case p.Namespace == "" || p.Generation < 1 || p.Position.Token == "" || len(p.Position.Offsets) == 0:
		return errors.New("a filter needs a namespace, a generation and a position")
	case p.MaxFalsePositive <= 0 || p.MaxFalsePositive >= 1 || p.AimFalsePositive <= 0 || p.AimFalsePositive > p.MaxFalsePositive:
		return fmt.Errorf("a filter's false-positive rate must be from 0 to 1, the aim (%g) not above the bound (%g)", p.AimFalsePositive, p.MaxFalsePositive)
	case p.Memory < 1:
		return errors.New("a filter needs memory")
	}
	return nil
}

// size picks the lowest rate that fits, of so many keys, beside what is taken
// already.
func (p *Plan) size(keys int64, taken int64) (sizing, error) {
	aim, least := sizeFor(oneKeyOf(p.AimFalsePositive)), sizeFor(oneKeyOf(p.MaxFalsePositive))
	fits := float64(p.Memory-taken) * 8 / float64(max(1, keys))
	switch {
	case fits >= aim.bitsPerKey:
		return aim, nil
	case fits < least.bitsPerKey:
		needed := taken + int64(least.bitsPerKey*float64(keys)/8)
		return sizing{}, fmt.Errorf("%w of %g: %d keys take %s at that rate, and the memory is %s", ErrBound,
			p.MaxFalsePositive, keys, bytesize.IBytes(uint64(needed)), bytesize.IBytes(uint64(p.Memory)))
	}
	return sizeWithin(fits), nil
}

// check refuses what did not turn out as planned.
func (b *Built) check(p Plan) error {
	s := newSnapshot(b.header, b.optOuts, b.optIns, 0)
	if err := s.checkCanaries(); err != nil {
		return fmt.Errorf("the filter that was just built does not work: %w", err)
	}
	b.measured = s.Measure(measureProbes, rand.New(rand.NewPCG(b.header.Salt, uint64(p.Generation))))
	if rate := b.header.FalsePositiveRate(); rate > p.MaxFalsePositive {
		return fmt.Errorf("%w of %g: its bits make a rate of %g", ErrBound, p.MaxFalsePositive, rate)
	}
	// Probes are few beside a low rate: allow what chance can do to them, six
	// standard deviations and a few.
	expected := p.MaxFalsePositive * measureProbes
	if b.measured*measureProbes > expected+6*math.Sqrt(expected)+6 {
		return fmt.Errorf("%w of %g: %g of the probes for nobody were hit", ErrBound, p.MaxFalsePositive, b.measured)
	}
	return nil
}

// collected is the keys of all segments, those of opt-ins apart.
type collected struct{ outs, ins buckets }

// collect reads all segments at once.
func (p *Plan) collect(ctx context.Context, segments []iter.Seq2[Key, error]) (all collected, counts Counts, err error) {
	most := int64(float64(p.Memory) * 8 / sizeFor(oneKeyOf(p.MaxFalsePositive)).bitsPerKey)
	var total atomic.Int64
	parts := make([]collected, len(segments)+1)
	tallies := make([]Counts, len(segments))
	group, running := errgroup.WithContext(ctx)
	for i, segment := range segments {
		group.Go(func() error {
			for key, err := range segment {
				if err != nil {
					return err
				}
				parts[i].put(key)
				tallies[i].add(key.Kind)
				if n := total.Add(1); n > most+tolerance {
					return fmt.Errorf("%w of %g: there are more than %d keys, and the memory is %s", ErrBound, p.MaxFalsePositive, most, bytesize.IBytes(uint64(p.Memory)))
				} else if n%ctxEvery == 0 && running.Err() != nil {
					return running.Err()
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return all, counts, err
	}
	canaryKeys(canaries, func(k Key) bool { parts[len(segments)].put(k); return true })
	for i := range parts {
		all.outs.take(&parts[i].outs)
		all.ins.take(&parts[i].ins)
	}
	for _, t := range tallies {
		counts.Holds, counts.HardHolds = counts.Holds+t.Holds, counts.HardHolds+t.HardHolds
		counts.OptOuts, counts.OptIns = counts.OptOuts+t.OptOuts, counts.OptIns+t.OptIns
	}
	return all, counts, ctx.Err()
}

const (
	// tolerance is how many keys beyond the bound are read, since some may come
	// twice.
	tolerance = 1 << 20
	ctxEvery  = 1 << 16
)

func (c *Counts) add(k Kind) {
	switch k {
	case Hold:
		c.Holds++
	case HardHold:
		c.HardHolds++
	case OptOut:
		c.OptOuts++
	case OptIn:
		c.OptIns++
	default:
	}
}

func (c *collected) put(k Key) {
	if k.Kind == OptIn {
		c.ins.put(k.Hash)
	} else {
		c.outs.put(k.Hash)
	}
}
