package node

import (
	"context"
	"fmt"
	"time"

	"github.com/sendgate/sendgate/api"
	"github.com/sendgate/sendgate/bloom"
	"github.com/sendgate/sendgate/bloom/archive"
	"github.com/sendgate/sendgate/feed"
	"github.com/sendgate/sendgate/keyspace"
)

// Filter says where a gate finds the filter of all opt-outs, and what it does
// with it.
type Filter struct {
	Archive      *archive.Archive
	CacheDir     string        // of private copies; empty is the system's
	Poll         time.Duration // how often to look without having been told
	MaxAge       time.Duration // an older one degrades the gate
	VerifySample float64       // share of rejections that are verified in the background, 0 to 1
	// MaxFalsePositive is the rate, of a whole check, above which a filter is
	// refused.
	MaxFalsePositive float64
}

// filtering is a gate's filter and what keeps it up to date.
type filtering struct {
	live    *bloom.Live
	keeper  *bloom.Keeper
	sampler *bloom.Sampler
}

func (n *Node) newFiltering(space *keyspace.Space) *filtering {
	o := n.o.Filter
	f := &filtering{sampler: bloom.NewSampler(o.VerifySample, n.overlay, func(r bloom.SampleResult) { n.metrics.RejectVerified(r.String()) })}
	f.live = bloom.NewLive(n.overlay, f.sampler.Offer)
	f.keeper = bloom.NewKeeper(bloom.KeeperOptions{
		Live: f.live, Source: published{o.Archive}, Replayer: feed.NewReplayer(n.o.Redis, space),
		Namespace: n.o.Namespace, Partitions: space.Partitions(), MaxFalsePositive: o.MaxFalsePositive, CacheDir: o.CacheDir, Poll: o.Poll, Log: n.o.Log,
		Loaded: func(r bloom.LoadResult) { n.metrics.FilterLoaded(r.String()) },
	})
	n.measureFilter(f)
	return f
}

// runFilter keeps the filter up to date until the context ends.
func (n *Node) runFilter(ctx context.Context) {
	n.running.Go(func() { n.filter.keeper.Run(ctx) })
	n.running.Go(func() { n.filter.sampler.Run(ctx, n.reader) })
}

// measureFilter shows the filter in use.
func (n *Node) measureFilter(f *filtering) {
	of := func(value func(*bloom.Snapshot) float64) func() float64 {
		return func() float64 {
			if s := f.live.Snapshot(); s != nil {
				return value(s)
			}
			return 0
		}
	}
	n.metrics.Gauge("sendgate_filter_generation", "Generation of the filter in use; 0 if there is none.",
		of(func(s *bloom.Snapshot) float64 { return float64(s.Header().Generation) }))
	n.metrics.Gauge("sendgate_filter_age_seconds", "How long ago the filter in use was built; 0 if there is none.",
		func() float64 { return f.live.Age(n.o.Now()).Seconds() })
	n.metrics.Gauge("sendgate_filter_bytes", "Size of the filter in use.",
		of(func(s *bloom.Snapshot) float64 { return float64(s.Size()) }))
	n.metrics.LabelledGauge("sendgate_filter_keys", "Keys in the filter in use.", "kind", "opt_out",
		of(func(s *bloom.Snapshot) float64 { return float64(s.Header().Keys.Rejecting()) }))
	n.metrics.LabelledGauge("sendgate_filter_keys", "Keys in the filter in use.", "kind", "opt_in",
		of(func(s *bloom.Snapshot) float64 { return float64(s.Header().Keys.OptIns) }))
	n.metrics.Gauge("sendgate_filter_false_positive_estimate", "How often the filter in use rejects somebody who has not opted out, from the bits that are set.",
		of(func(s *bloom.Snapshot) float64 { return s.Header().FalsePositiveRate() }))
	n.metrics.Gauge("sendgate_filter_verifying", "1 while all that the filter rejects is verified: there is none, or a change may have been missed.",
		func() float64 {
			if f.live.Current() {
				return 0
			}
			return 1
		})
}

// filterPart says how the filter is doing. Whatever is wrong with it makes checks
// slower, never wrong.
func (n *Node) filterPart() api.Part {
	part := api.Part{Name: "filter", State: api.PartOK}
	status, snapshot := n.filter.keeper.Status(), n.filter.live.Snapshot()
	old := n.filter.live.Age(n.o.Now())
	switch {
	case !status.Settled && (n.overlay.WasLive() || n.starting()):
		part.State, part.Detail = api.PartMissing, "what is published has not been looked at yet"
	case status.Problem != nil:
		part.State, part.Detail = api.PartDegraded, status.Problem.Error()
	case snapshot == nil:
		part.State, part.Detail = api.PartDegraded, "none is published yet: every check reads the record"
	case !n.filter.live.Current():
		part.State, part.Detail = api.PartDegraded, "a change may have been missed since it was built: what it rejects is verified"
	case old > n.o.Filter.MaxAge:
		part.State, part.Detail = api.PartDegraded, fmt.Sprintf("it was built %v ago: is the builder running?", old.Round(time.Second))
	}
	return part
}

// published is an archive as package bloom wants it.
type published struct{ *archive.Archive }

// Published lists what is published, the newest first.
func (p published) Published(ctx context.Context) ([]bloom.Published, error) {
	entries, err := p.Generations(ctx)
	list := make([]bloom.Published, len(entries))
	for i, e := range entries {
		list[i] = bloom.Published{Generation: e.Generation, Tag: e.ETag}
	}
	return list, err
}
