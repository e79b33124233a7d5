package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPublishAndFetch(t *testing.T) {
	onEveryPlace(t, func(t *testing.T, p testPlace) {
		a := p.open(t, "shop")
		if got := generations(t, a); len(got) != 0 {
			t.Fatalf("an empty place has the generations %v", got)
		}
		before := time.Now().Add(-24 * time.Hour) // clocks of places are their own
		mustPublish(t, a, 7, "seven")
		mustPublish(t, a, 1_732_000_000, strings.Repeat("newest ", 100_000))
		mustPublish(t, a, 40, "")

		if got := generations(t, a); !slices.Equal(got, []int64{1_732_000_000, 40, 7}) {
			t.Errorf("the generations are %v", got)
		}
		entries, err := a.Generations(t.Context())
		if err != nil || entries[0].Size != 700_000 || entries[1].Size != 0 || entries[2].Size != 5 {
			t.Errorf("%+v, %v", entries, err)
		}
		for _, e := range entries {
			if e.ETag == "" || e.Published.Before(before) || e.Published.Location() != time.UTC {
				t.Errorf("entry %+v", e)
			}
		}
		if entries[0].ETag == entries[1].ETag {
			t.Error("the contents differ and their tags do not")
		}
		if got := mustFetch(t, a, 7); got != "seven" {
			t.Errorf("fetched %q", got)
		}
		if got := mustFetch(t, a, 1_732_000_000); got != strings.Repeat("newest ", 100_000) {
			t.Errorf("fetched %d bytes that are others", len(got))
		}
		// Beside the snapshots there is nothing: no stage and no metadata.
		want := []string{"shop-00000000000000000007.filter", "shop-00000000000000000040.filter", "shop-00000000001732000000.filter"}
		if got := p.keys(t); !slices.Equal(got, want) {
			t.Errorf("the place has %q", got)
		}
	})
}

func TestNewestFirstOverManyPages(t *testing.T) {
	const many = 1_050 // a page has 1,000
	onEveryPlace(t, func(t *testing.T, p testPlace) {
		a := p.open(t, "shop")
		for i := 1; i <= many; i++ {
			p.put(t, fmt.Sprintf("shop-%020d.filter", i), "x")
		}
		got := generations(t, a)
		if len(got) != many || got[0] != many || got[many-1] != 1 {
			t.Fatalf("%d generations, from %d to %d", len(got), got[0], got[len(got)-1])
		}
		if !slices.IsSortedFunc(got, func(x, y int64) int { return int(y - x) }) {
			t.Error("they are not sorted")
		}
	})
}

func TestForeignNames(t *testing.T) {
	foreign := []string{
		"shop-eu-00000000000000000009.filter", // of another namespace
		"sho-00000000000000000009.filter",
		"shop-0000000000000000009.filter",   // 19 digits
		"shop-000000000000000000009.filter", // 21 digits
		"shop-99999999999999999999.filter",  // above the greatest generation
		"shop-00000000000000000000.filter",  // no generation
		"shop-+0000000000000000009.filter",
		"shop--0000000000000000009.filter",
		"shop-00000000000000000009.filter.attrs",
		"shop-00000000000000000009.filter.187b.tmp",
		"shop-00000000000000000009.filters",
		"Shop-00000000000000000009.filter",
		".shop-00000000000000000009.filter.ABC.part",
		"shop-below/shop-00000000000000000009.filter",
		"below/shop-00000000000000000009.filter",
		"README",
	}
	onEveryPlace(t, func(t *testing.T, p testPlace) {
		a := p.open(t, "shop")
		for _, name := range foreign {
			p.put(t, name, "foreign")
		}
		mustPublish(t, a, 3, "three")
		mustPublish(t, a, 4, "four")
		mustPublish(t, p.open(t, "shop-eu"), 5, "five")
		if got := generations(t, a); !slices.Equal(got, []int64{4, 3}) {
			t.Errorf("the generations are %v", got)
		}
		before := len(p.keys(t))
		if err := a.Prune(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if got := len(p.keys(t)); got != before-1 {
			t.Errorf("of %d objects %d are left, 1 was to go", before, got)
		}
		if got := generations(t, p.open(t, "shop-eu")); !slices.Equal(got, []int64{9, 5}) {
			t.Errorf("the generations of the other namespace are %v", got)
		}
	})
}

func TestPrune(t *testing.T) {
	onEveryPlace(t, func(t *testing.T, p testPlace) {
		a := p.open(t, "shop")
		if err := a.Prune(t.Context(), 3); err != nil {
			t.Errorf("an empty place: %v", err)
		}
		for generation := range int64(5) {
			mustPublish(t, a, 10+generation, "x")
		}
		for _, keep := range []int{0, -1} {
			if err := a.Prune(t.Context(), keep); err == nil {
				t.Errorf("pruned to %d", keep)
			}
		}
		for _, step := range []struct {
			keep int
			left []int64
		}{{9, []int64{14, 13, 12, 11, 10}}, {5, []int64{14, 13, 12, 11, 10}}, {3, []int64{14, 13, 12}}, {1, []int64{14}}} {
			if err := a.Prune(t.Context(), step.keep); err != nil {
				t.Fatal(err)
			}
			if got := generations(t, a); !slices.Equal(got, step.left) {
				t.Errorf("of the newest %d are left %v", step.keep, got)
			}
		}
		if err := a.remove(t.Context(), a.names.key(10)); err != nil {
			t.Errorf("what another has deleted: %v", err)
		}
	})
}

func TestFetchGone(t *testing.T) {
	onEveryPlace(t, func(t *testing.T, p testPlace) {
		a := p.open(t, "shop")
		mustPublish(t, a, 5, "five")
		for _, generation := range []int64{4, 0, -5} {
			var got bytes.Buffer
			if err := a.Fetch(t.Context(), generation, &got); !errors.Is(err, ErrGone) || got.Len() > 0 {
				t.Errorf("%v and %d bytes, not ErrGone", err, got.Len())
			}
		}
		full := errors.New("disk full")
		if err := a.Fetch(t.Context(), 5, failing{full}); !errors.Is(err, full) {
			t.Errorf("%v, not the writer's own error", err)
		}
	})
}

func TestGenerationsBeginAtOne(t *testing.T) {
	onEveryPlace(t, func(t *testing.T, p testPlace) {
		a := p.open(t, "shop")
		for _, generation := range []int64{0, -1} {
			if err := a.Publish(t.Context(), generation, func(io.Writer) error { return nil }); err == nil {
				t.Errorf("generation %d is published", generation)
			}
		}
		mustPublish(t, a, maxGeneration, "the last")
		if got := generations(t, a); !slices.Equal(got, []int64{maxGeneration}) {
			t.Errorf("the generations are %v", got)
		}
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func second[T any](_ T, err error) error { return err }

func generations(t *testing.T, a *Archive) (all []int64) {
	t.Helper()
	entries, err := a.Generations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Generation)
	}
	return all
}

func mustPublish(t *testing.T, a *Archive, generation int64, content string) {
	t.Helper()
	err := a.Publish(t.Context(), generation, func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func mustFetch(t *testing.T, a *Archive, generation int64) string {
	t.Helper()
	var got bytes.Buffer
	if err := a.Fetch(t.Context(), generation, &got); err != nil {
		t.Fatal(err)
	}
	return got.String()
}
