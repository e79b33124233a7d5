package limits

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sendgate/sendgate"
)

// noise is a value that does not compress, of 256 bytes.
func noise(n int) (s string) {
	for i := range 3 {
		sum := sha512.Sum512(fmt.Append(nil, n, i))
		s += base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return s[:256]
}

func TestLookingCostsNoAllocation(t *testing.T) {
	table := NewTable()
	by, values := []sendgate.Field{"campaign_id", "channel"}, []string{"c7", "push"}
	look := func() { table.Of(by, values) }
	if n := testing.AllocsPerRun(100, look); n != 0 {
		t.Errorf("empty: %v allocations", n)
	}
	key := Value{by, values}.key()
	table.put(shardOf([]byte(key)), newShard(1, map[string][]sendgate.ValueLimit{key: day(3)}))
	if n := testing.AllocsPerRun(100, look); n != 0 || len(table.Of(by, values)) != 1 {
		t.Errorf("with limits: %v allocations, %v", n, table.Of(by, values))
	}
}

func BenchmarkOf(b *testing.B) {
	table, limits := NewTable(), [Shards]map[string][]sendgate.ValueLimit{}
	for n := range 100_000 {
		key := campaign(fmt.Sprint("campaign-", n)).key()
		i := shardOf([]byte(key))
		if limits[i] == nil {
			limits[i] = map[string][]sendgate.ValueLimit{}
		}
		limits[i][key] = day(n % 7)
	}
	for i := range limits {
		table.put(i, newShard(1, limits[i]))
	}
	by, values := []sendgate.Field{"campaign_id"}, []string{"campaign-4711"}
	for b.Loop() {
		table.Of(by, values)
	}
}

func TestATableNeverGoesBack(t *testing.T) {
	table, key := NewTable(), campaign("c7").key()
	i := shardOf([]byte(key))
	for _, revision := range []int64{2, 1, 2} {
		table.put(i, newShard(revision, map[string][]sendgate.ValueLimit{key: day(int(revision))}))
		if got := table.Of([]sendgate.Field{"campaign_id"}, []string{"c7"}); got[0].Limit != 2 || table.Len() != 1 {
			t.Errorf("after revision %d: %v, %d values", revision, got, table.Len())
		}
	}
}

// A list in pages is what was set, in order, whatever the size of the pages, and
// so is what a table answers.
func TestTheTable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		g := newGate(t, fresh())
		want := map[string]Entry{}
		value := rapid.Custom(func(r *rapid.T) Value {
			part := rapid.SampledFrom([]string{"a", "b", "ab", "a b", "ü", "\U0001F514"})
			if rapid.Bool().Draw(r, "pair") {
				return Value{[]sendgate.Field{"campaign_id", "channel"}, []string{part.Draw(r, "campaign"), part.Draw(r, "channel")}}
			}
			return campaign(part.Draw(r, "campaign"))
		})
		for range rapid.IntRange(0, 20).Draw(r, "changes") {
			v := value.Draw(r, "value")
			if n := rapid.IntRange(-1, 3).Draw(r, "limit"); n < 0 {
				_, err := g.Remove(t.Context(), v, "")
				noError(r, err)
				delete(want, v.key())
			} else {
				_, err := g.Set(t.Context(), Entry{v, day(n)}, "")
				noError(r, err)
				want[v.key()] = Entry{v, day(n)}
			}
		}
		all := func(by []sendgate.Field) (list []Entry) {
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if by == nil || len(by) == len(want[key].By) {
					list = append(list, want[key])
				}
			}
			return list
		}
		size := rapid.IntRange(1, 5).Draw(r, "page")
		for _, by := range [][]sendgate.Field{nil, {"campaign_id"}, {"channel", "campaign_id"}} {
			var got []Entry
			after := ""
			for {
				p, err := g.List(t.Context(), by, after, size)
				noError(r, err)
				got = append(got, p.Entries...)
				if after = p.Next; after == "" {
					break
				}
				if len(p.Entries) != size {
					r.Fatalf("a page of %d, not %d", len(p.Entries), size)
				}
			}
			if d := cmp.Diff(all(by), got); d != "" {
				r.Fatalf("by %v: %s", by, d)
			}
		}
		v := value.Draw(r, "looked at")
		if d := cmp.Diff(want[v.key()].Limits, g.table.Of(v.By, v.Values)); d != "" {
			r.Fatalf("%v: %s", v, d)
		}
	})
}

func noError(r *rapid.T, err error) {
	if err != nil {
		r.Fatal(err)
	}
}

func TestIllegalLists(t *testing.T) {
	g := newGate(t, fresh())
	for _, c := range []struct {
		by    []sendgate.Field
		after string
		want  string
	}{{[]sendgate.Field{"colour"}, "", "by"}, {[]sendgate.Field{"channel", "channel"}, "", "by"}, {nil, "!", "after"}} {
		_, err := g.List(t.Context(), c.by, c.after, 10)
		if fault := (*sendgate.Error)(nil); !errors.As(err, &fault) || fault.Field != c.want {
			t.Errorf("%v after %q: %v", c.by, c.after, err)
		}
	}
	// A cursor of other fields, or of a value that is gone, is a place all the same.
	g.must("c7", 3)
	for _, after := range []string{cursorOf("a"), cursorOf(campaign("c6").key()), cursorOf("\xff")} {
		p, err := g.List(t.Context(), []sendgate.Field{"campaign_id"}, after, 10)
		if err != nil || p.Next != "" || (len(p.Entries) == 1) == (after == cursorOf("\xff")) {
			t.Errorf("after %s: %v, %v", after, p, err)
		}
	}
}

// A change is in force at other gates within 5 s, by a clock that nothing slows
// down, also of one whose announcement was cut off, within 35; while the store
// is down, or hangs, what is known stays.
func TestFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		docs := &faulty{Documents: fresh()}
		a, b := newGate(t, docs), newGate(t, docs)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { b.follower.Run(ctx); close(ended) }()
		defer func() { stop(); <-ended }()

		a.must("c7", 3)
		time.Sleep(2 * time.Second)
		b.obeys("c7", 3)

		hangs := func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() }
		docs.set(hangs, nil)
		time.Sleep(time.Minute)
		b.obeys("c7", 3)
		if age := b.follower.Age(); age < 58*time.Second || age > 62*time.Second {
			t.Errorf("after a minute without the store it is %v", age)
		}
		docs.set(nil, nil)
		a.must("c7", 4)
		time.Sleep(5 * time.Second)
		b.obeys("c7", 4)
		if age := b.follower.Age(); age > 2*time.Second {
			t.Errorf("it is %v", age)
		}

		docs.set(func(_ context.Context, call, name string) error {
			if call == "write" && name == indexName {
				return errFault
			}
			return nil
		}, nil)
		if _, err := a.Set(ctx, Entry{campaign("c7"), day(5)}, ""); err == nil {
			t.Error("it was announced")
		}
		time.Sleep(35 * time.Second)
		b.obeys("c7", 5)
	})
}

// A look that fails is said once, and so is the first that does not.
func TestFaultsAreSaidOnce(t *testing.T) {
	docs := &faulty{Documents: fresh()}
	g := newGate(t, docs)
	said := &lines{}
	g.follower.o.Log = slog.New(said)
	fail := func(context.Context, string, string) error { return errFault }
	for _, fault := range []func(context.Context, string, string) error{nil, fail, fail, nil, nil} {
		docs.set(fault, nil)
		_ = g.follower.Look(t.Context())
	}
	if len(said.levels) != 2 || said.levels[0] != slog.LevelWarn || said.levels[1] != slog.LevelInfo {
		t.Errorf("said at %v", said.levels)
	}
}

type lines struct {
	slog.Handler
	levels []slog.Level
}

func (*lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.levels = append(l.levels, r.Level)
	return nil
}

func FuzzDecodeShard(f *testing.F) {
	key := campaign("c7").key()
	i := shardOf([]byte(key))
	body, err := encodeShard(newShard(1, map[string][]sendgate.ValueLimit{key: day(3)}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte("1"))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := decodeShard(i, Document{1, body})
		if err != nil {
			return
		}
		again, err := encodeShard(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeShard(i, Document{1, again})
		if err != nil || !cmp.Equal(s.limits, back.limits) {
			t.Errorf("%v, %v", back, err)
		}
	})
}
