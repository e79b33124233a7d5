package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"os"
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
	// KeyMemory is how many bytes of keys are kept in memory. Those beyond it
	// are kept in a file in WorkDir, as is the snapshot until it is closed; an
	// empty WorkDir is the system's folder for temporary files. The files have
	// no name, so that nothing is left of them when the process ends.
	KeyMemory int64
	WorkDir   string
}

// Built is a snapshot that has been built and is not published yet. It has a
// file until it is closed.
type Built struct {
	header   Header
	measured float64
	spilled  int64
	file     *os.File
	size     int64
}

// Header says what was built.
func (b *Built) Header() *Header { return &b.header }

// Measured is the share of probes for users who do not exist that were hit.
func (b *Built) Measured() float64 { return b.measured }

// Spilled is how many bytes of keys were kept on disk while it was built.
func (b *Built) Spilled() int64 { return b.spilled }

// WriteTo writes the snapshot as a file.
func (b *Built) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, io.NewSectionReader(b.file, 0, b.size))
}

// Close gives the file of the snapshot back. What is known of the snapshot
// stays.
func (b *Built) Close() error { return b.file.Close() }

// Build makes a snapshot of keys, which come in any number of segments that
// are read at the same time. The first error of any of them ends it. It takes
// the plan's KeyMemory, a megabyte for each segment, and for each processor a
// 16th of a byte for each key and a megabyte. In WorkDir it takes eight bytes
// for each key that is beyond KeyMemory, and the snapshot. It reads no more keys
// than could be in a filter. The error is ErrBound if the keys do not fit into
// the memory at the highest rate that is allowed.
func Build(ctx context.Context, p Plan, segments ...iter.Seq2[Key, error]) (_ *Built, err error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	out := &spill{dir: p.WorkDir, most: p.KeyMemory / keyBytes}
	defer func() { err = errors.Join(err, out.close()) }()
	all, counts, err := p.collect(ctx, out, segments)
	if err != nil {
		return nil, err
	}
	d, err := newDraft(p.WorkDir)
	if err != nil {
		return nil, err
	}
	h := Header{
		Namespace: p.Namespace, Generation: p.Generation, BuiltAt: p.BuiltAt.UTC(), Position: p.Position, Keys: counts,
		Hashing: hashing, Salt: rand.Uint64(), Canaries: canaries, Covered: make([]Covered, len(p.Covered)),
	}
	for i, s := range p.Covered {
		h.Covered[i] = Covered(s)
	}
	b := &Built{file: d.file, spilled: out.bytes()}
	if err = p.fill(ctx, d, &h, all); err == nil {
		b.header = h
		b.size, err = d.finish(&h)
	}
	if err == nil {
		err = b.check(p)
	}
	if err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	return b, nil
}

// fill puts both filters into a draft, and into its header what they are.
func (p *Plan) fill(ctx context.Context, d *draft, h *Header, all *collected) (err error) {
	sizeIns := sizeFor(optInRate)
	shards, pages := sizeIns.layout(all.ins.count())
	taken := int64(shards) * int64(pages) * pageBytes
	size, err := p.size(all.outs.count(), taken)
	if err != nil {
		return err
	}
	for {
		if h.OptOuts, err = d.fill(ctx, 0, &all.outs, size, h.Salt); err != nil {
			return err
		}
		// Chance has set more bits than usual, which matters where there are few.
		size.bitsPerKey *= growth
		if h.FalsePositiveRate() <= p.MaxFalsePositive || float64(p.Memory-taken)*8 < size.bitsPerKey*float64(all.outs.count()) {
			break
		}
	}
	h.OptIns, err = d.fill(ctx, 1, &all.ins, sizeIns, h.Salt)
	return err
}

func (p *Plan) validate() error {
	switch {
	case p.Namespace == "" || p.Generation < 1 || p.Position.Token == "" || len(p.Position.Offsets) == 0:
		return errors.New("a filter needs a namespace, a generation and a position")
	case p.MaxFalsePositive <= 0 || p.MaxFalsePositive >= 1 || p.AimFalsePositive <= 0 || p.AimFalsePositive > p.MaxFalsePositive:
		return fmt.Errorf("a filter's false-positive rate must be from 0 to 1, the aim (%g) not above the bound (%g)", p.AimFalsePositive, p.MaxFalsePositive)
	case p.Memory < 1 || p.KeyMemory < 0:
		return errors.New("a filter needs memory")
	}
	return nil
}

// size picks the lowest rate that fits, of so many keys, beside what is taken
// already.
func (p *Plan) size(keys int64, taken int64) (sizing, error) {
	aim, least := sizeFor(oneKeyOf(p.AimFalsePositive)), sizeFor(oneKeyOf(p.MaxFalsePositive))
	fits := fitting(p.Memory-taken) * 8 / float64(max(1, keys))
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

// check refuses what did not turn out as planned. It looks at the file as gates
// do.
func (b *Built) check(p Plan) (err error) {
	s, data, err := mapFile(b.file)
	if err != nil {
		return fmt.Errorf("the filter that was just built does not work: %w", err)
	}
	defer func() { err = errors.Join(err, unmap(data)) }()
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
type collected struct{ outs, ins hoard }

// collect reads all segments at once.
func (p *Plan) collect(ctx context.Context, out *spill, segments []iter.Seq2[Key, error]) (*collected, Counts, error) {
	all := &collected{outs: hoard{out: out}, ins: hoard{out: out}}
	most := int64(float64(p.Memory) * 8 / sizeFor(oneKeyOf(p.MaxFalsePositive)).bitsPerKey)
	var total atomic.Int64
	tallies := make([]Counts, len(segments))
	group, running := errgroup.WithContext(ctx)
	for i, segment := range segments {
		group.Go(func() error {
			r := reader{outs: all.outs.feeder(), ins: all.ins.feeder(), tally: &tallies[i]}
			for key, err := range segment {
				if err == nil {
					err = r.put(key)
				}
				if err != nil {
					return err
				}
				if r.read%ctxEvery != 0 {
					continue
				}
				if n := total.Add(ctxEvery); n > most+tolerance {
					return fmt.Errorf("%w of %g: there are more than %d keys, and the memory is %s", ErrBound, p.MaxFalsePositive, most, bytesize.IBytes(uint64(p.Memory)))
				}
				if running.Err() != nil {
					return running.Err()
				}
			}
			return r.flush()
		})
	}
	err := group.Wait()
	if err == nil {
		r := reader{outs: all.outs.feeder(), ins: all.ins.feeder(), tally: new(Counts)}
		canaryKeys(canaries, func(k Key) bool { err = r.put(k); return err == nil })
		err = errors.Join(err, r.flush())
	}
	counts := Counts{}
	for _, t := range tallies {
		counts.Holds, counts.HardHolds = counts.Holds+t.Holds, counts.HardHolds+t.HardHolds
		counts.OptOuts, counts.OptIns = counts.OptOuts+t.OptOuts, counts.OptIns+t.OptIns
	}
	return all, counts, errors.Join(err, ctx.Err())
}

// reader is what reads one segment.
type reader struct {
	outs, ins *feeder
	tally     *Counts
	read      int64
}

const (
	// tolerance is how many keys beyond the bound are read before it is noticed.
	tolerance = 1 << 20
	ctxEvery  = 1 << 12
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

func (r *reader) put(k Key) error {
	r.read++
	r.tally.add(k.Kind)
	if k.Kind == OptIn {
		return r.ins.put(k.Hash)
	}
	return r.outs.put(k.Hash)
}

func (r *reader) flush() error { return errors.Join(r.outs.flush(), r.ins.flush()) }
