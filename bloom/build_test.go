package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sendgate/sendgate"
	"github.com/sendgate/sendgate/bloom"
)

var promotions = sendgate.Setting{Topic: "promotions", Channel: "push"}

// plan is a plan of a filter that is good enough for anything.
func plan() bloom.Plan {
	return bloom.Plan{
		Namespace: "t", Generation: 7, BuiltAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Position: sendgate.Position{Token: "mark", Offsets: []sendgate.Offset{{Millis: 1}, {Millis: 2, Seq: 3}}},
		Covered:  []sendgate.Setting{promotions}, Memory: 64 << 20, MaxFalsePositive: 0.001, AimFalsePositive: 1e-6,
	}
}

// keys are the opt-outs of n users by name.
func keys(name string, n int) iter.Seq2[bloom.Key, error] {
	return func(yield func(bloom.Key, error) bool) {
		for i := range n {
			for k := range bloom.KeysOf(optedOut(name, i), covers) {
				if !yield(k, nil) {
					return
				}
			}
		}
	}
}

func covers(s sendgate.Setting) bool { return s == promotions }

func optedOut(name string, i int) sendgate.Consent {
	return sendgate.Consent{User: sendgate.UserID(fmt.Sprint(name, i)), Settings: sendgate.Settings{promotions: false}}
}

func build(t testing.TB, p bloom.Plan, segments ...iter.Seq2[bloom.Key, error]) []byte {
	t.Helper()
	built, err := bloom.Build(t.Context(), p, segments...)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if n, err := built.WriteTo(&file); err != nil || n != int64(file.Len()) {
		t.Fatalf("%d bytes of %d: %v", n, file.Len(), err)
	}
	return file.Bytes()
}

func load(t testing.TB, file []byte) (*bloom.Snapshot, error) {
	t.Helper()
	return bloom.Load(t.TempDir(), func(w io.Writer) error {
		_, err := w.Write(file)
		return err
	})
}

func has(s *bloom.Snapshot, c sendgate.Consent) (all bool) {
	all = true
	for k := range bloom.KeysOf(c, covers) {
		all = all && s.Has(k)
	}
	return all
}

func TestEveryKeyIsFoundAgain(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000, 100_000} {
		s, err := load(t, build(t, plan(), keys("a", n), keys("b", n), keys("", 0)))
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		for i := range n {
			if !has(s, optedOut("a", i)) || !has(s, optedOut("b", i)) {
				t.Fatalf("%d: user %d is missing", n, i)
			}
		}
		found := 0
		for i := range 100_000 {
			if has(s, optedOut("c", i)) {
				found++
			}
		}
		if found > 5 { // a rate of half of 1e-6 for one key
			t.Errorf("%d: %d of 100,000 who have not opted out are found", n, found)
		}
		if rate := s.Header().FalsePositiveRate(); rate > 2e-6 {
			t.Errorf("%d: a rate of %g", n, rate)
		}
		if h := s.Header(); h.Keys.OptOuts != int64(2*n) || h.Generation != 7 || h.Position.Offsets[1].Seq != 3 {
			t.Errorf("%d: header %+v", n, h)
		}
	}
}

func TestKindsAreToldApart(t *testing.T) {
	everything := sendgate.Consent{User: "u", Global: true, Hard: true, Settings: sendgate.Settings{promotions: true, {Topic: "a", Channel: "b"}: false}}
	kinds := map[bloom.Kind]bloom.Key{}
	for k := range bloom.KeysOf(everything, covers) {
		kinds[k.Kind] = k
	}
	if len(kinds) != 4 {
		t.Fatalf("%v", kinds)
	}
	for kind, key := range kinds {
		s, err := load(t, build(t, plan(), func(yield func(bloom.Key, error) bool) { yield(key, nil) }))
		if err != nil {
			t.Fatal(err)
		}
		for other, k := range kinds {
			if got, want := s.Has(k), other == kind; got != want {
				t.Errorf("of a snapshot with a %s, has the %s: %t", kind, other, got)
			}
		}
	}
	// An opt-in that the snapshot does not cover has no key.
	for k := range bloom.KeysOf(everything, func(sendgate.Setting) bool { return false }) {
		if k.Kind == bloom.OptIn {
			t.Error("an opt-in that is not covered has a key")
		}
	}
}

// TestIdsThatCouldBeTaken has ids and settings that a careless key would
// confuse.
func TestIdsThatCouldBeTaken(t *testing.T) {
	seen := map[uint64]string{}
	for _, user := range []sendgate.UserID{"a", "A", "a ", "a:b", "ab", "a+b", "a%2Bb", "{a}", "\x00canary 0"} {
		for _, s := range []sendgate.Setting{{Topic: "a", Channel: "b"}, {Topic: "b", Channel: "a"}, {Topic: "ab", Channel: ""}, {Topic: "", Channel: "ab"}, {Topic: "a", Channel: "a"}} {
			for k := range bloom.KeysOf(sendgate.Consent{User: user, Settings: sendgate.Settings{s: false}}, covers) {
				what := fmt.Sprintf("%q %q", user, s)
				if before, there := seen[k.Hash]; there {
					t.Errorf("%s and %s have one key", before, what)
				}
				seen[k.Hash] = what
			}
		}
	}
}

func TestMemoryDecidesTheRate(t *testing.T) {
	const n = 50_000
	p := plan()
	for _, bitsPerKey := range []float64{45, 30, 20, 18} {
		p.Memory = int64(n * bitsPerKey / 8)
		built, err := bloom.Build(t.Context(), p, keys("a", n))
		if err != nil {
			t.Fatalf("%g bits a key: %v", bitsPerKey, err)
		}
		h := built.Header()
		if size := (h.OptOuts.Words + h.OptIns.Words) * 8; size > p.Memory+4096 {
			t.Errorf("%d bytes of %d", size, p.Memory)
		}
		t.Logf("%g bits a key: a rate of %.2g, %.2g measured", bitsPerKey, h.FalsePositiveRate(), built.Measured())
		if rate := h.FalsePositiveRate(); rate > p.MaxFalsePositive || bitsPerKey > 31 && rate > 1.2*p.AimFalsePositive {
			t.Errorf("%g bits a key: a rate of %g", bitsPerKey, rate)
		}
	}
	// Sized for n, and four times as many come.
	if _, err := bloom.Build(t.Context(), p, keys("a", 4*n)); !errors.Is(err, bloom.ErrBound) {
		t.Errorf("four times the keys: %v", err)
	}
	// So many that not even all of them are read.
	p.Memory = 1 << 10
	if _, err := bloom.Build(t.Context(), p, keys("a", 2<<20)); !errors.Is(err, bloom.ErrBound) {
		t.Errorf("two million keys in a kilobyte: %v", err)
	}
}

// TestTheStatedRateIsTrue counts what a filter of a high rate does to people
// who have not opted out, and holds it against what its header says.
func TestTheStatedRateIsTrue(t *testing.T) {
	p := plan()
	p.MaxFalsePositive, p.AimFalsePositive = 0.01, 0.01
	s, err := load(t, build(t, p, keys("a", 200_000)))
	if err != nil {
		t.Fatal(err)
	}
	hits := 0
	const asked = 400_000
	for i := range asked {
		c := optedOut("nobody", i)
		c.Global = true
		for k := range bloom.KeysOf(c, covers) {
			if s.Has(k) {
				hits++
				break
			}
		}
	}
	rate, stated := float64(hits)/asked, s.Header().FalsePositiveRate()
	if rate > 1.1*stated || rate < 0.9*stated { // six standard deviations
		t.Errorf("%g of the checks are hit, and the header says %g", rate, stated)
	}
	measured := s.Measure(asked, rand.New(rand.NewPCG(1, 2)))
	if measured > 1.1*stated || measured < 0.9*stated {
		t.Errorf("measured %g, and the header says %g", measured, stated)
	}
}

// TestAnotherSaltOtherFalsePositives shows that whoever is rejected by mistake
// by one snapshot is not by the next.
func TestAnotherSaltOtherFalsePositives(t *testing.T) {
	p := plan()
	p.MaxFalsePositive, p.AimFalsePositive = 0.01, 0.01
	var snapshots [2]*bloom.Snapshot
	for i := range snapshots {
		var err error
		if snapshots[i], err = load(t, build(t, p, keys("a", 50_000))); err != nil {
			t.Fatal(err)
		}
	}
	first, both := 0, 0
	for i := range 400_000 {
		c := optedOut("nobody", i)
		if has(snapshots[0], c) {
			first++
			if has(snapshots[1], c) {
				both++
			}
		}
	}
	if first < 1000 || both > first/20 {
		t.Errorf("%d by the first, and %d of them by the second too", first, both)
	}
}

func TestNothingIsBuiltOfWhatFails(t *testing.T) {
	broken := errors.New("segment 3 is gone")
	fails := func(yield func(bloom.Key, error) bool) { yield(bloom.Key{}, broken) }
	if _, err := bloom.Build(t.Context(), plan(), keys("a", 10), fails, keys("b", 10)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bloom.Build(ended, plan(), keys("a", 10)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for what, change := range map[string]func(*bloom.Plan){
		"no namespace": func(p *bloom.Plan) { p.Namespace = "" }, "no generation": func(p *bloom.Plan) { p.Generation = 0 },
		"no position": func(p *bloom.Plan) { p.Position.Offsets = nil }, "no memory": func(p *bloom.Plan) { p.Memory = 0 },
		"an aim above the bound": func(p *bloom.Plan) { p.AimFalsePositive = 0.1 }, "a rate of one": func(p *bloom.Plan) { p.MaxFalsePositive = 1 },
	} {
		p := plan()
		change(&p)
		if _, err := bloom.Build(t.Context(), p, keys("a", 10)); err == nil {
			t.Errorf("%s is built", what)
		}
	}
}
