package limits

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/sendgate/sendgate"
)

const (
	writeLimit    = 5 * time.Second // of a change, until it is durable
	announceLimit = 5 * time.Second // and from there until gates find it
)

// MaxPage is how many values one page of a list has at most.
const MaxPage = 1000

// ServiceOptions are what a Service is made of. All are required.
type ServiceOptions struct {
	Follower *Follower // of the table of this gate, and of the store
	Catalog  func() *sendgate.Catalog
	Log      *slog.Logger
}

// Service sets and lists limits. It is safe for concurrent use.
type Service struct {
	follower *Follower
	docs     Documents
	table    *Table
	catalog  func() *sendgate.Catalog
	log      *slog.Logger
	turns    [Shards]chan struct{} // taken by who changes a shard: one at a time of this gate
}

// NewService makes a Service.
func NewService(o ServiceOptions) *Service {
	s := &Service{follower: o.Follower, docs: o.Follower.o.Documents, table: o.Follower.o.Table, catalog: o.Catalog, log: o.Log}
	for i := range s.turns {
		s.turns[i] = make(chan struct{}, 1)
	}
	return s
}

// Set replaces the limits of a value, of which there must be one at least, and
// returns them in their order. They are in force here then, and within 5 s at
// every gate. Fields that no cap of the catalog counts by are refused with
// CodeInvalidCap.
func (s *Service) Set(ctx context.Context, e Entry, actor string) (Entry, error) {
	value, errs := e.sorted()
	limits, more := sortedLimits(e.Limits)
	if errs = append(errs, more...); len(errs) == 0 {
		errs.Add(cappedBy(s.catalog(), value.By))
	}
	if err := errs.Err(); err != nil {
		return Entry{}, err
	}
	if err := s.change(ctx, value.key(), limits); err != nil {
		return Entry{}, err
	}
	s.log.Info("the limits of a value were set", "by", listed(value.By), "value", shown(value), "limits", limits, "actor", actor)
	return Entry{value, limits}, nil
}

// Remove takes all limits of a value away, so that it has those of the catalog.
// It is no error if it has none.
func (s *Service) Remove(ctx context.Context, v Value, actor string) (Entry, error) {
	value, errs := v.sorted()
	if err := errs.Err(); err != nil {
		return Entry{}, err
	}
	if err := s.change(ctx, value.key(), nil); err != nil {
		return Entry{}, err
	}
	s.log.Info("the limits of a value were removed", "by", listed(value.By), "value", shown(value), "actor", actor)
	return Entry{Value: value}, nil
}

// shown is a value for the log, which names nobody: the fields whose values are
// an operator's own, and of others that there is one.
func shown(v Value) string {
	texts := slices.Clone(v.Values)
	for i, f := range v.By {
		if !slices.Contains([]sendgate.Field{"campaign_id", "creative_id", "category", "topic", "channel"}, f) {
			texts[i] = "…"
		}
	}
	return strings.Join(texts, ", ")
}

// Page is a part of a list.
type Page struct {
	Entries []Entry
	Next    string // what to give as after for the next one; empty after the last
}

// List lists the values that have limits, by fields and then by values, in the
// order of bytes: those of some fields, in any order, or of all if there are
// none; those after a page, at most limit and MaxPage of them. It sees every
// change that was answered before.
func (s *Service) List(ctx context.Context, by []sendgate.Field, after string, limit int) (Page, error) {
	errs := fieldFaults(by, func(int) string { return "by" })
	key, fault := keyOf(after)
	errs.Add(fault)
	if err := errs.Err(); err != nil {
		return Page{}, err
	}
	if err := s.follower.look(ctx, false); err != nil {
		return Page{}, unavailable(err)
	}
	prefix := ""
	if len(by) > 0 {
		prefix = string(appendKey(nil, slices.Sorted(slices.Values(by)), nil))
	}
	var p Page
	var more bool
	if p.Entries, more = s.table.page(prefix, key, max(1, min(limit, MaxPage))); more {
		p.Next = cursorOf(p.Entries[len(p.Entries)-1].key())
	}
	return p, nil
}

// change makes a change durable, obeys it here, and has the other gates find it.
// A caller who goes away in between stops nothing: they would find it later.
func (s *Service) change(ctx context.Context, key string, limits []sendgate.ValueLimit) error {
	i := shardOf([]byte(key))
	next, err := s.write(ctx, i, key, limits)
	if err == nil {
		s.table.put(i, next)
		err = s.announce(context.WithoutCancel(ctx), i, next.revision)
	}
	return unavailable(err)
}

// write repeats a conditional write until it is known to have been made. Where
// the value has these limits, there is nothing to write.
func (s *Service) write(ctx context.Context, i int, key string, limits []sendgate.ValueLimit) (*shard, error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	select {
	case s.turns[i] <- struct{}{}:
		defer func() { <-s.turns[i] }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return backoff.Retry(ctx, func() (*shard, error) {
		d, err := s.docs.ReadDocument(ctx, shardName(i))
		if err != nil {
			return nil, err
		}
		stored, err := decodeShard(i, d)
		if err != nil {
			return nil, backoff.Permanent(err)
		}
		if slices.Equal(stored.limits[key], limits) {
			return stored, nil
		}
		next := stored.with(key, limits)
		body, err := encodeShard(next)
		if err != nil {
			return nil, backoff.Permanent(err)
		}
		return next, s.docs.WriteDocument(ctx, shardName(i), body, d.Revision)
	}, backoff.WithBackOff(pauses()))
}

// announce sees to it that the index has a revision of a shard, or a later one.
func (s *Service) announce(ctx context.Context, i int, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, announceLimit)
	defer cancel()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		d, err := s.docs.ReadDocument(ctx, indexName)
		if err != nil {
			return struct{}{}, err
		}
		x, err := decodeIndex(d)
		if err != nil {
			return struct{}{}, backoff.Permanent(err)
		}
		if x.Revisions[i] >= revision {
			return struct{}{}, nil
		}
		x.Revisions[i] = revision
		body, err := encodeIndex(x)
		if err != nil {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, s.docs.WriteDocument(ctx, indexName, body, d.Revision)
	}, backoff.WithBackOff(pauses()))
	return err
}

func pauses() backoff.BackOff {
	return &backoff.ExponentialBackOff{InitialInterval: 5 * time.Millisecond, MaxInterval: 200 * time.Millisecond, Multiplier: 1.5, RandomizationFactor: 0.5}
}

// unavailable is what a caller is told when the store did not do its part.
func unavailable(err error) error {
	var own *sendgate.Error
	if err == nil || errors.As(err, &own) || errors.Is(err, errDamaged) {
		return err
	}
	return &sendgate.Error{Code: sendgate.CodeStoreUnavailable, Detail: "the store did not answer: nothing was written, or it is not known; repeat the call", Err: err}
}
