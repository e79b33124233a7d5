package archive

import (
	"slices"
	"testing"
)

// FuzzKeys holds that a name is read as a generation only if it is the very
// name that the generation is published under.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{
		"shop-00000000000000000007.filter", "shop-eu-00000000000000000007.filter",
		"shop-99999999999999999999.filter", "shop--0000000000000000007.filter", "shop-.filter", "",
	} {
		f.Add("shop", seed)
	}
	f.Fuzz(func(t *testing.T, namespace, key string) {
		n, err := newNames(namespace)
		if err != nil {
			return
		}
		if generation, ok := n.generation(key); ok && (generation < 1 || n.key(generation) != key) {
			t.Errorf("%q is read as generation %d of %q", key, generation, namespace)
		}
	})
}

func TestKeysSortByGeneration(t *testing.T) {
	n, err := newNames("shop-eu")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, generation := range []int64{1, 9, 10, 1_732_000_000, maxGeneration} {
		key := n.key(generation)
		if got, ok := n.generation(key); !ok || got != generation {
			t.Errorf("%q is read as %d, %t", key, got, ok)
		}
		keys = append(keys, key)
	}
	if !slices.IsSorted(keys) {
		t.Errorf("not sorted: %q", keys)
	}
}

// TestGenerationsThatAreNotOurs puts generations there after which there is
// hardly another number, and one that is just small enough.
func TestGenerationsThatAreNotOurs(t *testing.T) {
	onEveryPlace(t, func(t *testing.T, place testPlace) {
		a := place.open(t, "shop")
		for _, generation := range []int64{7, maxGeneration, maxGeneration + 1, 1<<63 - 1} {
			place.put(t, a.names.key(generation), "foreign")
		}
		if got := generations(t, a); !slices.Equal(got, []int64{maxGeneration, 7}) {
			t.Errorf("the generations are %v", got)
		}
	})
}
