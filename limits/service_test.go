package limits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendgate/sendgate"
)

func TestSetLowerRaiseRemove(t *testing.T) {
	docs := fresh()
	a, b := newGate(t, docs), newGate(t, docs)
	for _, n := range []int{3, 0, sendgate.MaxCapLimit, 1} {
		a.must("c7", n)
		a.obeys("c7", n)
		b.look(false)
		b.obeys("c7", n)
		a.obeys("c8", -1)
	}
	got, err := b.Set(t.Context(), Entry{Value{[]sendgate.Field{"channel", "campaign_id"}, []string{"push", "c7"}}, []sendgate.ValueLimit{
		{Window: sendgate.Duration(7 * 24 * time.Hour), Limit: 10}, day(3)[0],
	}}, "")
	want := Entry{Value{[]sendgate.Field{"campaign_id", "channel"}, []string{"c7", "push"}}, []sendgate.ValueLimit{day(3)[0], {Window: sendgate.Duration(7 * 24 * time.Hour), Limit: 10}}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("set: %v\n%s", err, d)
	}
	a.look(false)
	if d := cmp.Diff(want.Limits, a.table.Of(want.By, want.Values)); d != "" {
		t.Error(d)
	}
	a.obeys("c7", 1) // another value
	for range 2 {    // the second finds nothing to remove
		if e, err := b.Remove(t.Context(), campaign("c7"), ""); err != nil || len(e.Limits) != 0 {
			t.Errorf("removed: %v, %v", e, err)
		}
		b.obeys("c7", -1)
	}
	a.look(false)
	a.obeys("c7", -1)
	if a.table.Len() != 1 {
		t.Errorf("%d values have limits", a.table.Len())
	}
	// Who starts later reads all of it.
	c := newGate(t, docs)
	if err := c.follower.Look(t.Context()); err != nil || c.table.Len() != 1 {
		t.Errorf("a new gate has %d values: %v", c.table.Len(), err)
	}
}

func TestRefusals(t *testing.T) {
	g := newGate(t, fresh())
	long, many := strings.Repeat("x", 257), make([]sendgate.ValueLimit, MaxLimits+1)
	for name, c := range map[string]struct {
		by     string
		values []string
		limits []sendgate.ValueLimit
		want   string
	}{
		"no fields":          {"", nil, day(1), "missing_field: by"},
		"no limits":          {"campaign_id", []string{"c"}, nil, "missing_field: limits"},
		"no value":           {"campaign_id", nil, day(1), "invalid_field: values"},
		"too many values":    {"campaign_id", []string{"a", "b"}, day(1), "invalid_field: values"},
		"an unknown field":   {"campaign_id colour", []string{"a", "b"}, day(1), "invalid_field: by[1]"},
		"a field twice":      {"campaign_id campaign_id", []string{"a", "b"}, day(1), "duplicate_entry: by[1]"},
		"an empty value":     {"campaign_id", []string{""}, day(1), "invalid_field: values[0]"},
		"a long value":       {"campaign_id", []string{long}, day(1), "invalid_field: values[0]"},
		"a zero byte":        {"channel campaign_id", []string{"push", "a\x00b"}, day(1), "invalid_field: values[1]"},
		"not capped by":      {"sender_id", []string{"s"}, day(1), "invalid_cap: by"},
		"capped by more":     {"channel", []string{"push"}, day(1), "invalid_cap: by"},
		"another's cap":      {"creative_id", []string{"x"}, day(1), "invalid_cap: by"},
		"a negative limit":   {"campaign_id", []string{"c"}, day(-1), "invalid_cap: limits[0].limit"},
		"too high a limit":   {"campaign_id", []string{"c"}, day(sendgate.MaxCapLimit + 1), "invalid_cap: limits[0].limit"},
		"too many limits":    {"campaign_id", []string{"c"}, many, "invalid_cap: limits"},
		"no window":          {"campaign_id", []string{"c"}, make([]sendgate.ValueLimit, 1), "invalid_cap: limits[0].window"},
		"too long a window":  {"campaign_id", []string{"c"}, []sendgate.ValueLimit{{Window: sendgate.Duration(sendgate.MaxCapWindow + time.Second)}}, "invalid_cap: limits[0].window"},
		"a broken window":    {"campaign_id", []string{"c"}, []sendgate.ValueLimit{{Window: sendgate.Duration(1500 * time.Millisecond)}}, "invalid_cap: limits[0].window"},
		"a window twice":     {"campaign_id", []string{"c"}, slices.Concat(day(1), day(2)), "duplicate_entry: limits[1].window"},
		"several in a whole": {"campaign_id", []string{""}, day(-1), "invalid_field: values[0]"},
	} {
		var by []sendgate.Field
		for _, f := range strings.Fields(c.by) {
			by = append(by, sendgate.Field(f))
		}
		_, err := g.Set(t.Context(), Entry{Value{by, c.values}, c.limits}, "")
		if err == nil || !strings.HasPrefix(err.Error(), c.want+":") {
			t.Errorf("%s: %v, not %s", name, err, c.want)
		}
	}
	if _, err := g.Remove(t.Context(), Value{}, ""); sendgate.CodeOf(err) != sendgate.CodeMissingField {
		t.Errorf("removing nothing: %v", err)
	}
	// What the catalog does not cap by any more can be removed.
	if _, err := g.Remove(t.Context(), Value{[]sendgate.Field{"sender_id"}, []string{"s"}}, ""); err != nil {
		t.Error(err)
	}
	if d, err := g.docs.ReadDocument(t.Context(), indexName); err != nil || d.Revision != 0 {
		t.Errorf("something was written: %v, %v", d, err)
	}
}

// A gate that ends between the two writes leaves a change that is durable, and
// that gates find when they read everything, or when the call is repeated.
func TestCutOffBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which waits for no limit
		docs := &faulty{Documents: fresh()}
		a, b, c := newGate(t, docs), newGate(t, docs), newGate(t, docs)
		docs.set(func(_ context.Context, call, name string) error {
			if call == "write" && name == indexName {
				return errFault
			}
			return nil
		}, nil)
		if err := a.change(t.Context(), campaign("c7").key(), day(3)); sendgate.CodeOf(err) != sendgate.CodeStoreUnavailable {
			t.Errorf("cut off: %v", err)
		}
		docs.set(nil, nil)
		a.obeys("c7", 3) // it is durable
		b.look(false)
		b.obeys("c7", -1)
		b.look(true)
		b.obeys("c7", 3)
		c.look(false)
		c.obeys("c7", -1)
		b.must("c7", 3) // again, at another gate
		c.look(false)
		c.obeys("c7", 3)
		if d, err := docs.ReadDocument(t.Context(), shardName(shardOf([]byte(campaign("c7").key())))); err != nil || d.Revision != 1 {
			t.Errorf("the document was written again: revision %d, %v", d.Revision, err)
		}
	})
}

// A caller who goes away once the change is durable does not stop it.
func TestACallerWhoGoesAway(t *testing.T) {
	docs := &faulty{Documents: fresh()}
	a, b := newGate(t, docs), newGate(t, docs)
	ctx, cancel := context.WithCancel(t.Context())
	docs.set(nil, func(string) error { cancel(); return nil })
	if _, err := a.Set(ctx, Entry{campaign("c7"), day(3)}, ""); err != nil {
		t.Error(err)
	}
	b.look(false)
	b.obeys("c7", 3)
}

// An answer that is lost is found out by reading again.
func TestLostAnswers(t *testing.T) {
	docs := &faulty{Documents: fresh()}
	a, b := newGate(t, docs), newGate(t, docs)
	var lost sync.Map
	docs.set(nil, func(name string) error {
		if _, before := lost.LoadOrStore(name, true); !before {
			return errFault
		}
		return nil
	})
	a.must("c7", 3)
	b.look(false)
	b.obeys("c7", 3)
	for _, name := range []string{indexName, shardName(shardOf([]byte(campaign("c7").key())))} {
		if d, err := docs.ReadDocument(t.Context(), name); err != nil || d.Revision != 1 {
			t.Errorf("%s was written %d times: %v", name, d.Revision, err)
		}
	}
}

func TestAStoreThatIsDown(t *testing.T) {
	docs := &faulty{Documents: fresh()}
	g := newGate(t, docs)
	g.must("c7", 3)
	docs.set(func(context.Context, string, string) error { return errFault }, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := g.Set(ctx, Entry{campaign("c7"), day(4)}, "")
	_, listErr := g.List(t.Context(), nil, "", 10)
	if sendgate.CodeOf(err) != sendgate.CodeStoreUnavailable || sendgate.CodeOf(listErr) != sendgate.CodeStoreUnavailable {
		t.Errorf("set: %v; list: %v", err, listErr)
	}
	g.obeys("c7", 3)
}

func TestManyWritersLoseNothing(t *testing.T) {
	const gates, each = 4, 24
	docs := fresh()
	var all sync.WaitGroup
	for i := range gates {
		g := newGate(t, docs)
		for j := range each {
			all.Go(func() {
				if _, err := g.Set(t.Context(), Entry{campaign(fmt.Sprintf("c%d-%d", i, j)), day(j)}, ""); err != nil {
					t.Errorf("%d-%d: %v", i, j, err)
				}
			})
		}
	}
	all.Wait()
	late := newGate(t, docs)
	late.look(false)
	for i := range gates {
		for j := range each {
			late.obeys(fmt.Sprintf("c%d-%d", i, j), j)
		}
	}
}

// What is damaged is neither obeyed nor written over, and what is known stays.
func TestDamagedDocuments(t *testing.T) {
	docs := fresh()
	g := newGate(t, docs)
	g.must("c7", 3)
	name := shardName(shardOf([]byte(campaign("c7").key())))
	whole, err := docs.ReadDocument(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range [][]byte{nil, []byte("2"), []byte("1{}"), whole.Body[:len(whole.Body)-9], append([]byte("2"), whole.Body[1:]...)} {
		if err := docs.WriteDocument(t.Context(), name, body, whole.Revision+int64(i)); err != nil {
			t.Fatal(err)
		}
		if err := g.follower.Look(t.Context()); !errors.Is(err, errDamaged) {
			t.Errorf("damage %d: %v", i, err)
		}
		if _, err := g.Set(t.Context(), Entry{campaign("c7"), day(4)}, ""); sendgate.CodeOf(err) != sendgate.CodeInternal {
			t.Errorf("set over damage %d: %v", i, err)
		}
		g.obeys("c7", 3)
	}
	if err := docs.WriteDocument(t.Context(), indexName, []byte(`1{"revisions":[1]}`), 1); err != nil {
		t.Fatal(err)
	}
	if err := g.follower.look(t.Context(), false); !errors.Is(err, errDamaged) {
		t.Errorf("a damaged index: %v", err)
	}
}

func TestADocumentThatIsFull(t *testing.T) {
	docs := fresh()
	g := newGate(t, docs)
	s, i := &shard{limits: map[string][]sendgate.ValueLimit{}}, shardOf([]byte(campaign("c7").key()))
	for n := 0; len(s.limits) < 1300; n++ { // of 1320 or so that have room
		if key := campaign(noise(n)).key(); shardOf([]byte(key)) == i {
			s.limits[key] = day(n % 7)
		}
	}
	s = newShard(0, s.limits)
	body, err := encodeShard(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := docs.WriteDocument(t.Context(), shardName(i), body, 0); err != nil {
		t.Fatal(err)
	}
	g.must("c7", 1) // there is room
	for n := 1_000_000; err == nil; n++ {
		if v := campaign(noise(n)); shardOf([]byte(v.key())) == i {
			_, err = g.Set(t.Context(), Entry{v, day(1)}, "")
		}
	}
	if sendgate.CodeOf(err) != sendgate.CodeRecordTooLarge {
		t.Errorf("full: %v", err)
	}
	for n := range 100 { // makes room again
		if _, err := g.Remove(t.Context(), campaign(noise(n)), ""); err != nil {
			t.Fatal(err)
		}
	}
	g.must("c7", 2)
}
